//! Every vector file is reproduced bit for bit.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

use std::path::{Path, PathBuf};

use attest::conformance::{Outcome, Report, run_paths};

fn run_folder(folder: &Path) -> Report {
    let report = run_paths(&[folder.to_owned()]).unwrap();
    for file in &report.files {
        for column in &file.columns {
            match &column.outcome {
                Outcome::Compared { differences: 0, .. } => {}
                Outcome::Compared { differences, cases, first, .. } => panic!(
                    "{}, {}: {differences} of {cases} differ, first {first:?}",
                    file.name, column.label
                ),
                Outcome::NotCovered { reason } => {
                    panic!("{}, {}: {reason}", file.name, column.label)
                }
            }
        }
    }
    println!("{}: {} files, {} outputs", folder.display(), report.files.len(), report.cases());
    report
}

/// A folder of the larger sets, which are not part of the package: `spec/isa.md`,
/// *Evidence*, says where they come from. `$ATTEST_VECTORS` names the folder that
/// has them; without it, `../shared/vectors` is tried.
fn beside(name: &str) -> Option<PathBuf> {
    let sets = match std::env::var_os("ATTEST_VECTORS").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/vectors"),
    };
    let folder = sets.join(name);
    if !folder.is_dir() {
        println!(
            "skipped: {} is not here; ATTEST_VECTORS can name the folder of the sets",
            folder.display()
        );
        return None;
    }
    Some(folder)
}

#[test]
fn repository_vectors_are_reproduced() {
    let report = run_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("spec/vectors"));
    assert_eq!(report.not_covered(), 0);
}

#[test]
fn all_model_vectors_are_reproduced() {
    if let Some(folder) = beside("mma") {
        assert_eq!(run_folder(&folder).files.len(), 111);
    }
}

#[test]
fn all_hardware_readings_are_reproduced() {
    if let Some(folder) = beside("hw") {
        assert_eq!(run_folder(&folder).files.len(), 48);
    }
}
