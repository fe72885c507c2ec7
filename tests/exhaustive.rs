//! Sweeps of functions of one binary32 against `spec/vectors/mufu_digests.json`.
//!
//! A few chunks of 2^24 inputs a function on every run; all 2^32 inputs on demand:
//! `ATTEST_EXHAUSTIVE=ex2,rcp cargo test --release --test exhaustive`, or `=all`.
//! `ATTEST_WRITE_DIGESTS=path` writes the model's digests of the functions that
//! `ATTEST_EXHAUSTIVE` names into that file instead of comparing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may stop

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use attest::isa::mma::Simd;
use attest::num::Digest;
use attest::recipe::libdevice::sweep::{
    CHUNKS, DigestFile, Function, Recorded, chunk_digest, chunk_digest_of_slices,
};
use rayon::prelude::*;

/// Chunks that are compared on every run: the first byte of the input pattern.
fn sample(function: Function) -> &'static [u8] {
    match function {
        // zero and subnormals; fractions; 2^5 to 2^7 and its negative, where results overflow,
        // become subnormal or are flushed; infinity and NaN
        Function::Ex2 | Function::Expf => &[0x00, 0x3f, 0x42, 0xc2, 0xff],
        // subnormal and overflowing or flushed results; both signs around 1; infinity and NaN
        Function::Rcp | Function::Reciprocal => &[0x00, 0x3f, 0x7e, 0x7f, 0xbf],
        // the smallest numbers; around 1; infinity and NaN; negative
        Function::Rsq | Function::Lg2 | Function::Logf => &[0x00, 0x3f, 0x40, 0x7f, 0x80],
        // tiny; around 1; both sides of the change of reduction at 47ce4780; the largest
        Function::Sinf | Function::Cosf => &[0x3f, 0x47, 0x7f, 0x80, 0xc0],
        // subnormal results; carries into the exponent; overflow and NaN
        Function::Bf16 => &[0x00, 0x3f, 0xff],
    }
}

#[test]
fn model_reproduces_the_recorded_digests() {
    let requested = std::env::var("ATTEST_EXHAUSTIVE").ok().map(|list| parse(&list));
    if let Some(path) = std::env::var_os("ATTEST_WRITE_DIGESTS") {
        write(Path::new(&path), &requested.expect("ATTEST_EXHAUSTIVE names the functions"));
        return;
    }
    let file = read(&recorded_path());
    let work = chunks(requested);
    let different: Vec<String> = work
        .par_iter()
        .filter_map(|&(function, chunk)| {
            let expected = recorded(&file, function, chunk);
            let computed = chunk_digest(function, chunk);
            (computed != expected).then(|| {
                format!(
                    "{} {chunk:02x}000000..={chunk:02x}ffffff: recorded {expected}, computed {computed}",
                    function.name()
                )
            })
        })
        .collect();
    println!("{} chunks of 2^24 inputs compared", work.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn forms_over_slices_reproduce_the_recorded_digests() {
    if std::env::var_os("ATTEST_WRITE_DIGESTS").is_some() {
        return;
    }
    let file = read(&recorded_path());
    let work = chunks(std::env::var("ATTEST_EXHAUSTIVE").ok().map(|list| parse(&list)));
    for simd in Simd::available() {
        let compared = work.par_iter().filter_map(|&(function, chunk)| {
            let computed = chunk_digest_of_slices(function, simd, chunk)?;
            let (form, name) = (simd.name(), function.name());
            assert_eq!(computed, recorded(&file, function, chunk), "{form} {name} {chunk:02x}");
            Some(())
        });
        let compared = compared.count();
        println!("{}: {} chunks of 2^24 inputs compared", simd.name(), compared);
    }
}

#[test]
fn every_function_has_all_its_digests_from_hardware() {
    let file = read(&recorded_path());
    assert_eq!(file.format, DigestFile::FORMAT);
    assert_eq!(file.functions.len(), Function::ALL.len());
    for name in Function::ALL.map(Function::name) {
        let entry = &file.functions[name];
        assert_eq!(entry.chunks.len(), CHUNKS, "{name}");
        assert!(entry.chunks.iter().all(|text| Digest::from_hex(text).is_some()), "{name}");
        assert_ne!(entry.provenance, DigestFile::MODEL, "{name}");
    }
}

/// All chunks of the functions asked for, or the sample of every function.
fn chunks(requested: Option<Vec<Function>>) -> Vec<(Function, u8)> {
    match requested {
        Some(functions) => {
            functions.into_iter().flat_map(|f| (0..=255).map(move |chunk| (f, chunk))).collect()
        }
        None => Function::ALL
            .into_iter()
            .flat_map(|f| sample(f).iter().map(move |&chunk| (f, chunk)))
            .collect(),
    }
}

/// Parses a comma list of names, or `all`; an unknown name is an error, not skipped.
fn parse(list: &str) -> Vec<Function> {
    if list == "all" {
        return Function::ALL.to_vec();
    }
    let known = |name: &str| {
        Function::from_name(name)
            .unwrap_or_else(|| panic!("ATTEST_EXHAUSTIVE: no function {name:?}"))
    };
    list.split(',').map(known).collect()
}

fn recorded_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("spec/vectors/mufu_digests.json")
}

fn read(path: &Path) -> DigestFile {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn recorded(file: &DigestFile, function: Function, chunk: u8) -> Digest {
    let entry = file.functions.get(function.name());
    let entry = entry.unwrap_or_else(|| panic!("no digests of {} are recorded", function.name()));
    Digest::from_hex(&entry.chunks[usize::from(chunk)]).unwrap()
}

/// Writes or extends a digest file with the model's digests.
fn write(path: &Path, functions: &[Function]) {
    let mut file = if path.exists() {
        read(path)
    } else {
        DigestFile { format: DigestFile::FORMAT.to_owned(), functions: BTreeMap::new() }
    };
    for function in functions {
        let chunks = (0..=255)
            .into_par_iter()
            .map(|chunk| chunk_digest(*function, chunk).to_string())
            .collect();
        let recorded = Recorded { provenance: DigestFile::MODEL.to_owned(), chunks };
        file.functions.insert(function.name().to_owned(), recorded);
        std::fs::write(path, serde_json::to_string_pretty(&file).unwrap() + "\n").unwrap();
    }
}
