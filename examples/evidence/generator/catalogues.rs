//! The tables of products that catalogues list, from `catalogs/*.json`.

use std::collections::BTreeSet;

use attest::recipe::catalog::listing::{Algorithm, Listing, Shape};
use attest::recipe::catalog::{Catalog, Choice};

use super::markdown::{count, table};

/// Sums over algorithms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) algorithms: u64,
    split: u64,
    pub(crate) outputs: u64,
    pub(crate) accumulators: u64,
    pub(crate) repeated: u64,
    pub(crate) differing: u64,
}

impl Totals {
    pub(crate) fn of<'a>(algorithms: impl IntoIterator<Item = &'a Algorithm>) -> Self {
        let mut totals = Self::default();
        for Algorithm { attributes, compared, .. } in algorithms {
            totals.algorithms += 1;
            totals.split += u64::from(attributes.split_k > 1);
            totals.outputs += compared.outputs;
            totals.accumulators += compared.accumulators;
            totals.repeated += compared.repeated;
            totals.differing += compared.differing;
        }
        totals
    }

    /// All comparisons.
    pub(crate) fn compared(&self) -> u64 {
        self.outputs + self.accumulators + self.repeated
    }
}

/// The algorithms that a choice names, each once.
pub(crate) fn chosen(shape: &Shape, choice: Choice) -> Vec<&Algorithm> {
    let indices: BTreeSet<usize> = shape.runs(choice).iter().map(|run| run.2).collect();
    indices.into_iter().filter_map(|index| shape.algorithms.get(index)).collect()
}

/// For each catalogue a sentence, and a table if it lists products.
pub(crate) fn tables(catalogues: &[Catalog]) -> String {
    let tables: Vec<String> = catalogues
        .iter()
        .map(|catalog| match catalog.listing() {
            Some(listing) => table_of(listing),
            None => format!(
                "`{}` lists no products but families of algorithms: the products in `gpu.jsonl`.\n",
                catalog.id()
            ),
        })
        .collect();
    tables.join("\n")
}

fn table_of(listing: &Listing) -> String {
    let totals = Totals::of(listing.shapes.iter().flat_map(|shape| &shape.algorithms));
    let Listing { id, gpus, library, measured, .. } = listing;
    let versions: Vec<String> = library.versions.iter().map(u64::to_string).collect();
    let head = [
        "weights",
        "n",
        "k",
        "choice",
        "algorithms",
        "of them split-K",
        "m listed",
        "m launched",
        "outputs",
        "accumulators",
        "repetitions",
        "differing",
    ];
    let pairs = listing.shapes.iter().flat_map(|shape| Choice::ALL.map(|choice| (shape, choice)));
    let rows: Vec<Vec<String>> = pairs.map(|(shape, choice)| row(shape, choice)).collect();
    format!(
        "`{id}`: {}, driver {}, CUDA {}, cuBLASLt {}: {} algorithms listed, {} values compared, {} differ.{}\n\n{}",
        gpus.join(", "),
        measured.driver,
        measured.cuda_driver,
        versions.join(", "),
        count(totals.algorithms),
        count(totals.compared()),
        count(totals.differing),
        left_out(listing),
        table(&head, &rows)
    )
}

/// The algorithms that a build refused, where the file says so.
fn left_out(listing: &Listing) -> String {
    match listing.refused.len() {
        0 => String::new(),
        some => format!(" Left out: {some} ({}).", listing.refused.join("; ")),
    }
}

fn row(shape: &Shape, choice: Choice) -> Vec<String> {
    let totals = Totals::of(chosen(shape, choice));
    let launched: BTreeSet<u64> =
        chosen(shape, choice).into_iter().flat_map(|a| a.compared.m.iter().copied()).collect();
    let listed: u64 = shape.runs(choice).iter().map(|run| run.1 - run.0 + 1).sum();
    vec![
        shape.weights.join(", "),
        count(shape.n),
        count(shape.k),
        choice.name().into(),
        count(totals.algorithms),
        count(totals.split),
        count(listed),
        count(launched.len() as u64),
        count(totals.outputs),
        count(totals.accumulators),
        count(totals.repeated),
        count(totals.differing),
    ]
}
