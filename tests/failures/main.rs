//! Faults that others reported of programs like this one, in the smallest input that
//! has them: what the built binary does, with its exit code and its sentence.
//!
//! The rows are those of `spec/failures.md`, the attacks those of `spec/red-team.md`;
//! `table` holds both pages against the tests that they name. Many rows have their test
//! elsewhere in `tests/`, and are not repeated here.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

mod claims;
#[path = "../support/command.rs"]
mod command;
mod encodings;
#[path = "../support/folder.rs"]
mod folder;
mod gpu;
mod links;
mod prompts;
mod red_team;
#[allow(dead_code)] // made for the tests of the reader
#[path = "../model/folder.rs"]
mod small;
#[path = "../support/mod.rs"]
mod support;
mod table;
mod weights;

use command::{Ended, Home, end, text, tiny_model};

/// Verifies `t.cbor` with these options, and the tiny model if they name none. Requires
/// this exit code, its word as the last line, and a line that starts with `row` and has
/// these words. No other verdict than VERIFIED may use the word.
fn judged(home: &Home, options: &[&str], exit: i32, row: &str, words: &[&str]) -> Ended {
    let model = tiny_model();
    let mut args = [&["verify", "t.cbor", "--no-diagnosis"], options].concat();
    if !args.contains(&"--model") {
        args.extend(["--model", text(&model)]);
    }
    let ended = end(&mut home.attest(&args));
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.exit, exit, "{shown}");
    let word = match exit {
        0 => "VERIFIED",
        1 => "MISMATCH",
        3 => "UNTRUSTED",
        4 => "MALFORMED",
        5 => "INCOMPLETE",
        other => panic!("no verdict has exit code {other}"),
    };
    assert_eq!(ended.stdout.lines().last(), Some(word), "{shown}");
    assert_eq!(shown.to_lowercase().contains("verified"), exit == 0, "{shown}");
    let line = ended.stdout.lines().find(|line| line.starts_with(row));
    let line = line.unwrap_or_else(|| panic!("no row {row}: {shown}"));
    for word in words {
        assert!(line.contains(word), "{word:?} is not in {line:?}");
    }
    ended
}
