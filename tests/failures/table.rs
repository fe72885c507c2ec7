//! The pages `spec/failures.md` and `spec/red-team.md` name tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Every function under `tests` and `src` that is a test, and those of this folder.
fn tests() -> (BTreeSet<String>, BTreeSet<String>) {
    fn search(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                search(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let source = fs::read_to_string(&path).unwrap();
                // From one mark to the next name of a function.
                for part in source.split("#[test]").skip(1) {
                    let name = part.split_once("fn ").and_then(|(_, rest)| rest.split_once('('));
                    let is_name =
                        |name: &&str| name.chars().all(|c| c == '_' || c.is_alphanumeric());
                    found.extend(name.map(|(name, _)| name).filter(is_name).map(str::to_owned));
                }
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut all, mut own) = (BTreeSet::new(), BTreeSet::new());
    for folder in ["tests", "src"] {
        search(&root.join(folder), &mut all);
    }
    search(&root.join("tests/failures"), &mut own);
    (all, own)
}

/// The rows of a page's tables, as cells, without the heads.
fn rows(page: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("spec").join(page);
    let text = fs::read_to_string(path).unwrap();
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let is_row = |line: &&str| {
        line.starts_with("| ") && !line.starts_with("| #") && !line.starts_with("| attack |")
    };
    text.lines().filter(is_row).map(cells).collect()
}

/// The names in backticks of a cell.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Requires exit codes that exist, in the cell of a row.
fn check_exits(cell: &str, row: &[String]) {
    let codes: Vec<&str> = cell.split([',', ' ']).filter(|code| !code.is_empty()).collect();
    let known = |code: &&str| ["0", "1", "2", "3", "4", "5", "6", "70", "–"].contains(code);
    assert!(!codes.is_empty() && codes.iter().all(known), "exit codes of {row:?}");
}

#[test]
fn every_row_is_there_and_names_tests_that_exist() {
    let (all, own) = tests();
    assert!(all.len() > 300, "{}", all.len());
    let mut named = BTreeSet::new();
    let failures = rows("failures.md");
    let mut numbers: Vec<usize> = failures.iter().map(|row| row[0].parse().unwrap()).collect();
    numbers.sort_unstable(); // the page has them by theme
    assert_eq!(numbers, (1..=38).collect::<Vec<_>>());
    let attacks = rows("red-team.md");
    assert!(attacks.len() >= 11, "{}", attacks.len());
    // Number or attack, then what, how, exit code, what happens, tests.
    for (row, columns, exits) in
        failures.iter().map(|row| (row, 6, 3)).chain(attacks.iter().map(|row| (row, 5, 3)))
    {
        assert_eq!(row.len(), columns, "{row:?}");
        check_exits(&row[exits], row);
        let tests = names(&row[columns - 1]);
        assert!(!tests.is_empty(), "no test in {row:?}");
        for test in tests {
            assert!(all.contains(&test), "there is no test {test}: {row:?}");
            named.insert(test);
        }
    }
    // And no test of this target is about a row that does not know it.
    let here = "every_row_is_there_and_names_tests_that_exist";
    let silent: Vec<&String> = own.difference(&named).filter(|test| *test != here).collect();
    assert!(silent.is_empty(), "{silent:?}");
}
