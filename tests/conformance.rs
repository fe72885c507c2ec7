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

/// Folder of larger sets that are not part of the package.
fn beside(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/vectors").join(name);
    if !folder.is_dir() {
        println!("skipped: {} is not here", folder.display());
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
