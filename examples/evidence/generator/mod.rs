//! From evidence files to tables. `tests/evidence.rs` includes this module too, so that
//! a page that is behind its files fails the tests.

pub(crate) mod catalogues;
pub(crate) mod gpu_tests;
pub(crate) mod markdown;
pub(crate) mod models;
pub(crate) mod record;
pub(crate) mod recording;
pub(crate) mod summary;

use std::error::Error;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use attest::recipe::catalog::Catalog;

use gpu_tests::Run;
use record::Record;

pub(crate) type Failed = Box<dyn Error>;

/// The pages with generated parts.
pub(crate) const PAGES: &[&str] = &["README.md", "spec/README.md", "spec/evidence/README.md"];

/// Everything that tables are made from.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// Tests on a GPU: `gpu.jsonl`.
    pub(crate) tests: Vec<Run>,
    /// The crate's catalogues, `catalogs/*.json`.
    pub(crate) catalogues: Vec<Catalog>,
    /// Runs of whole models: `models.jsonl`.
    pub(crate) models: Vec<Record>,
}

impl Evidence {
    /// Reads all of it. A file of records that is not there has none.
    pub(crate) fn read(root: &Path) -> Result<Self, Failed> {
        let lines = |name: &str| match fs::read_to_string(root.join("spec/evidence").join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|error| format!("{name}: {error}")),
        };
        Ok(Self {
            tests: gpu_tests::read(&lines("gpu.jsonl")?)?,
            catalogues: Catalog::ids().map(Catalog::by_id).collect::<Result<_, _>>()?,
            models: record::read(&lines("models.jsonl")?)?,
        })
    }
}

/// The text that a page should have: what is between its marks, made anew.
pub(crate) fn regenerated(root: &Path, page: &str) -> Result<String, Failed> {
    let evidence = Evidence::read(root)?;
    let text = fs::read_to_string(root.join(page)).map_err(|error| format!("{page}: {error}"))?;
    let parts = if page == "spec/evidence/README.md" {
        vec![
            ("tests", gpu_tests::tables(&evidence.tests)),
            ("catalogues", catalogues::tables(&evidence.catalogues)),
            ("models", models::tables(&evidence.models)),
        ]
    } else {
        vec![("compared", summary::table(&evidence))]
    };
    parts.into_iter().try_fold(text, |text, (mark, content)| {
        markdown::replaced(&text, mark, &content).map_err(|error| format!("{page}: {error}").into())
    })
}
