//! The seeds of the fuzz targets, replayed without a fuzzer.
//!
//! A seed's name says whether the reader must accept it: `accepted-…` or `refused-…`. A
//! finding of a fuzzer is kept here under such a name.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

#[path = "../../fuzz/bodies/mod.rs"]
mod bodies;
mod seeds;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target)
}

/// The committed seeds of a target by name.
fn committed(target: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder(target)).unwrap_or_else(|e| panic!("{target}: {e}"));
    let read = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    entries.map(|entry| read(entry.unwrap())).collect()
}

#[test]
fn every_seed_is_accepted_or_refused_as_its_name_says() {
    for (target, body) in bodies::ALL {
        let seeds = committed(target);
        for (name, bytes) in &seeds {
            let expected = match name.split_once('-') {
                Some(("accepted", _)) => true,
                Some(("refused", _)) => false,
                Some(_) | None => panic!("{target}/{name}: neither accepted- nor refused-"),
            };
            assert_eq!(body(bytes), expected, "{target}/{name}");
            assert!(bytes.len() <= 8 << 10, "{target}/{name}: {} bytes", bytes.len());
        }
        let accepted = seeds.keys().filter(|name| name.starts_with("accepted-")).count();
        assert!((1..seeds.len()).contains(&accepted), "{target}: both kinds are needed");
    }
}

/// Cuts and single flipped bits: what a fuzzer tries first.
#[test]
fn no_prefix_and_no_flipped_bit_of_a_seed_panics() {
    for (target, body) in bodies::ALL {
        for bytes in committed(target).values().filter(|bytes| bytes.len() <= 2 << 10) {
            for end in 0..bytes.len() {
                body(&bytes[..end]);
                let mut flipped = bytes.clone();
                flipped[end] ^= 1 << (end % 8);
                body(&flipped);
            }
        }
    }
}

/// The seeds are written by `ATTEST_BLESS=1 cargo test --test fuzz_corpus generated`; findings
/// of a fuzzer beside them stay.
#[test]
fn every_generated_seed_is_committed() {
    let is_blessing = std::env::var_os("ATTEST_BLESS").is_some();
    for (target, name, bytes) in seeds::all() {
        if is_blessing {
            fs::create_dir_all(folder(target)).unwrap();
            fs::write(folder(target).join(&name), &bytes).unwrap();
        }
        assert!(committed(target).get(&name) == Some(&bytes), "{target}/{name} differs");
    }
}
