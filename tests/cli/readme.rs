//! The README's first command does what the README says.

use std::path::Path;

use crate::{Home, end};

#[test]
fn the_first_command_of_the_readme_verifies() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let block = readme.split("<!-- ci: verify -->").nth(1).expect("the mark <!-- ci: verify -->");
    let block = block.split("```").nth(1).expect("a block of commands after the mark");
    let start = "$ cargo run --release -- verify ";
    let line = block.lines().find_map(|line| line.strip_prefix(start)).expect("a command verify");
    let mut command = Home::empty().attest(&["verify"]);
    let ended = end(command.current_dir(root).args(line.split_whitespace()));
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stdout.lines().last(), Some("VERIFIED"));
}
