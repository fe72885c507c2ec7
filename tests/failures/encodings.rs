//! Encodings: bytes that are no transcript, or almost one.

use std::sync::OnceLock;

use attest::transcript::Transcript;
use attest::transcript::cose::Envelope;
use attest::transcript::statement::LogitsMode;
use ciborium::Value;

use crate::command::Home;
use crate::judged;
use crate::support::{Making, key};

/// The smallest transcript: one token, digests only.
fn original() -> &'static Transcript {
    static ORIGINAL: OnceLock<Transcript> = OnceLock::new();
    ORIGINAL.get_or_init(|| {
        Making { max_new_tokens: 1, logits: LogitsMode::Hash, ..Making::default() }.make().seal()
    })
}

/// A payload signed by the trusted key, with the sections of the original.
fn signed(payload: &[u8]) -> Vec<u8> {
    let file = original().as_bytes();
    [&Envelope::seal(payload, &key()), &file[Envelope::open(file).unwrap().end..]].concat()
}

fn malformed(home: &Home, file: &[u8], words: &[&str]) {
    home.write("t.cbor", file);
    judged(home, &[], 4, "encoding", words);
}

/// Rows 16 to 19: the trusted key signed it, so that nothing but the encoding is wrong.
#[test]
fn hostile_cbor_is_malformed_at_its_offset() {
    let deep = vec![0x81; 200_000];
    // (row, payload, where in it, sentence)
    let cases: [(u8, &[u8], usize, &str); 10] = [
        (16, b"\xa2\x61a\x01\x61a\x02", 4, "a map key appears twice"),
        (16, b"\x18\x17", 0, "a number is not in its shortest form"),
        (16, b"\x5f\x41\xaa\x41\xbb\xff", 0, "indefinite length"),
        (16, b"\x01\x00", 1, "data after the end"),
        (17, b"\x9b\x40\0\0\0\0\0\0\0", 0, "announces more"),
        (17, b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff", 0, "announces more"),
        (17, b"\x9a\x06\xb4\x9d\x20", 0, "announces more"),
        (18, b"\xbb\x80\0\0\0\0\0\0\x01", 0, "announces more"),
        (19, &deep, 16, "nested deeper than 16 levels"),
        (19, &[0xc0; 300], 0, "a tag is not allowed here"),
    ];
    let home = Home::configured();
    for (row, payload, at, sentence) in cases {
        let file = signed(payload);
        let start = Envelope::open(&file).unwrap().payload.start;
        println!("row {row}");
        malformed(&home, &file, &[&format!("byte {}: {sentence}", start + at)]);
        // As the whole file it does not even begin like one.
        malformed(&home, payload, &["byte 0: "]);
    }
}

/// Rows 14 and 15: envelopes that other readers of COSE take.
#[test]
fn other_forms_of_the_envelope_are_malformed() {
    let file = original().as_bytes();
    let payload = Envelope::open(file).unwrap().payload;
    // Tag, array, the protected header with its length, the empty unprotected header.
    assert_eq!(file[..3], [0xd2, 0x84, 0x58]);
    let header = 4 + usize::from(file[3]);
    assert_eq!(file[header], 0xa0);
    let with = |protected: &[u8], unprotected: &[u8]| {
        [&file[..2], protected, unprotected, &file[header + 1..]].concat()
    };
    let kid = [b"\xa2\x01\x27\x04\x48", &key().public().id().0[..]].concat();
    let long = [b"\x59\x00", &file[3..header]].concat();
    // (row, file, sentence)
    let cases = [
        (
            14,
            with(b"\x41\xa0", &kid),
            "byte 4: signed envelope: the unprotected header must be empty",
        ),
        (14, with(b"\x40", &kid), "byte 3: signed envelope: the unprotected header must be empty"),
        (14, with(b"\x41\xa0", b"\xa0"), "signed envelope: "),
        (14, with(b"\x40", b"\xa0"), "signed envelope: "),
        (15, with(&long, b"\xa0"), "byte 2: a number is not in its shortest form"),
    ];
    let home = Home::configured();
    for (row, file, sentence) in cases {
        println!("row {row}");
        malformed(&home, &file, &[sentence]);
    }
    assert!(payload.start > header);
}

/// Row 34.
#[test]
fn a_statement_without_a_required_field_is_malformed() {
    let statement: Value = ciborium::from_reader(original().statement_bytes()).unwrap();
    let fields = statement.into_map().unwrap();
    // The nonce is the one optional field.
    assert_eq!(fields.len(), 20);
    let home = Home::configured();
    for missing in 0..19 {
        let mut fewer = fields.clone();
        fewer.remove(missing);
        let mut payload = Vec::new();
        ciborium::into_writer(&Value::Map(fewer), &mut payload).unwrap();
        let file = signed(&payload);
        // The number of the field, or its name.
        malformed(&home, &file, &["statement: ", " is missing"]);
    }
}

/// Row 38. `a_file_cut_at_any_byte_is_malformed_and_says_where` has every byte, without
/// the program around it.
#[test]
fn a_cut_or_growing_file_is_malformed_at_its_offset() {
    let file = original().as_bytes();
    let sections = Envelope::open(file).unwrap().end;
    let around = |at: usize| at - 2..(at + 3).min(file.len());
    let cuts = (0..8).chain((8..file.len()).step_by(41)).chain(around(sections));
    let home = Home::configured();
    for length in cuts.chain(around(file.len())) {
        malformed(&home, &file[..length], &["byte "]);
    }
    for more in [&[0][..], &[0x40], file] {
        let sentence = format!("byte {}: {} bytes after the last section", file.len(), more.len());
        malformed(&home, &[file, more].concat(), &[&sentence]);
    }
}

/// Row 20: a schema library copies what it validates. Tests use one, on statements only;
/// the program has none.
#[test]
fn the_program_applies_no_schema() {
    let manifest = include_str!("../../Cargo.toml").parse::<toml::Table>().unwrap();
    for library in ["cddl", "jsonschema"] {
        assert!(!manifest["dependencies"].as_table().unwrap().contains_key(library), "{library}");
        assert!(
            manifest["dev-dependencies"].as_table().unwrap().contains_key(library),
            "{library}"
        );
    }
}
