//! The format of transcripts: what is read, and everything that is refused.
//!
//! Numbers in comments are rows of the table of hostile input in
//! `spec/transcript.md`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)] // a test: a panic is its report
#![allow(clippy::type_complexity)] // tables of cases

use attest::num::{Bf16, Digest, Dtype, Tensor};
use attest::transcript::cose::{Envelope, SIGNING_CONTEXT};
use attest::transcript::key::{PrivateKey, PublicKey};
use attest::transcript::leaf::LeafHeader;
use attest::transcript::record::Recorder;
use attest::transcript::statement::{
    Algorithm, Artifact, Batch, DispatchRow, Engine, Environment, Extension, FORMAT_VERSION,
    FinishReason, GpuEnvironment, KernelSource, LogitsMode, ManifestFile, ModelManifest, Pass,
    Sampling, Statement, Tool, TraceMode,
};
use attest::transcript::{RefusalClass, Transcript, TranscriptError, merkle, strict};
use ciborium::Value;
use proptest::prelude::*;

const CDDL: &str = include_str!("../schemas/transcript.cddl");
const VOCAB: usize = 4;

fn key() -> PrivateKey {
    PrivateKey::from_seed(&[7; 32])
}

fn digest(byte: u8) -> Digest {
    Digest([byte; 32])
}

/// A prefill of three tokens and one decode step, with made-up values.
fn recorder(logits: LogitsMode, trace: TraceMode, salt: u16) -> Recorder {
    let mut recorder = Recorder::new(logits, trace, VOCAB as u64, Dtype::Bf16);
    let tensor = |rows: usize, first: u16| {
        let element = |index| Bf16(0x3f80 + salt + first + index as u16);
        Tensor::matrix(rows, VOCAB, (0..rows * VOCAB).map(element).collect())
    };
    // Layer by layer: not in the order of the leaves.
    for (step, name) in [(1, "layer.0"), (2, "layer.1")] {
        for (pass, rows) in [(1, 1), (0, 3)] {
            if trace != TraceMode::None {
                recorder.step(pass, step, name, &tensor(rows, step as u16 * 40)).unwrap();
            }
        }
    }
    recorder.logits(1, 3, &tensor(1, 200)).unwrap();
    recorder.logits(0, 2, &tensor(1, 100)).unwrap();
    recorder
}

fn build(logits: LogitsMode, trace: TraceMode, salt: u16) -> (Statement, Vec<Vec<u8>>) {
    let mut recording = recorder(logits, trace, salt).finish().unwrap();
    let contents = recording.contents().unwrap();
    let artifact = |id: &str, byte| Artifact { id: id.to_owned(), digest: digest(byte) };
    let file = |path: &str, len_bytes, byte| ManifestFile {
        path: path.to_owned(),
        len_bytes,
        sha256: digest(byte),
    };
    let algorithm = Algorithm {
        id: 66,
        tile: 20,
        stages: 24,
        split_k: 1,
        reduction_scheme: 0,
        swizzle: 0,
        custom_option: 0,
        inner_shape: 0,
        cluster_shape: 2,
        workspace_bytes: 1 << 25,
    };
    let row = |m| DispatchRow {
        op: "linear".to_owned(),
        m,
        n: 4,
        k: 8,
        recipe: "single_walk".to_owned(),
        algorithm: Some(algorithm.clone()),
    };
    let statement = Statement {
        format_version: FORMAT_VERSION,
        tool: Tool { name: "attest".to_owned(), version: "0.1.0".to_owned() },
        numerics: 1,
        model: ModelManifest::new(
            "tiny",
            vec![file("config.json", 700, 1), file("model.safetensors", 1 << 33, 2)],
        ),
        profile: artifact("h200", 3),
        catalogue: artifact("h200-native", 4),
        environment: Environment {
            engine: Engine::Cuda,
            gpu: Some(GpuEnvironment {
                name: "NVIDIA H200".to_owned(),
                driver: "580.95.05".to_owned(),
                cuda_driver: "13.0".to_owned(),
                cuda_runtime: None,
                cublaslt: "13.1.0.3".to_owned(),
                nvrtc: "13.0".to_owned(),
                kernels: vec![KernelSource { name: "rope.cu".to_owned(), sha256: digest(5) }],
                nvrtc_options: vec!["-fmad=false".to_owned()],
            }),
        },
        stack: "native".to_owned(),
        sampling: Sampling {
            rule: "greedy".to_owned(),
            max_new_tokens: 2,
            stop_ids: vec![0, 3],
            recorded: "{\"temperature\":0.6}".to_owned(),
        },
        prompt: b"Call me \xff\0".to_vec(),
        tokens_in: vec![2, 1, 2],
        tokens_out: vec![1, 2],
        finish: FinishReason::Length,
        dispatch: vec![row(1), row(3)],
        passes: vec![
            Pass {
                start_position: 0,
                token_count: 3,
                plan_digest: digest(6),
                logits_rows: 1,
                batch: None,
            },
            Pass {
                start_position: 3,
                token_count: 1,
                plan_digest: digest(7),
                logits_rows: 1,
                batch: None,
            },
        ],
        logits: recording.logits,
        trace: recording.trace,
        sections: recording.sections,
        claimed_time: 1_796_045_700,
        nonce: Some(vec![9; 16]),
        extensions: vec![],
    };
    (statement, contents)
}

fn seal(logits: LogitsMode, trace: TraceMode, salt: u16) -> Transcript {
    let (statement, contents) = build(logits, trace, salt);
    Transcript::seal(&statement, &contents, &key()).unwrap()
}

fn full() -> Transcript {
    seal(LogitsMode::Full, TraceMode::Steps, 0)
}

/// Item 0 with a valid signature over any payload, then the sections of `from`.
fn resigned(payload: &[u8], from: &Transcript) -> Vec<u8> {
    let end = Envelope::open(from.as_bytes()).unwrap().end;
    [&Envelope::seal(payload, &key()), &from.as_bytes()[end..]].concat()
}

fn encode(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
}

fn statement_value(transcript: &Transcript) -> Vec<(Value, Value)> {
    let value: Value = ciborium::from_reader(transcript.statement_bytes()).unwrap();
    value.into_map().unwrap()
}

fn malformed(file: Vec<u8>) -> String {
    let refusal = Transcript::parse(file).unwrap_err();
    assert_eq!(refusal.class(), RefusalClass::Malformed, "{refusal}");
    refusal.to_string()
}

#[test]
fn reads_back_what_it_writes() {
    for logits in [LogitsMode::Full, LogitsMode::Hash] {
        for trace in [TraceMode::None, TraceMode::Layers, TraceMode::Steps] {
            let (statement, contents) = build(logits, trace, 0);
            let sealed = Transcript::seal(&statement, &contents, &key()).unwrap();
            let read = Transcript::parse(sealed.as_bytes().to_vec()).unwrap();
            assert_eq!(read.statement(), &statement);
            assert_eq!(read.section("logits"), Some(contents[0].as_slice()));
            assert_eq!(read.section("trace"), contents.get(1).map(Vec::as_slice));
            assert_eq!(read.digest(), statement.digest().unwrap());
            assert_eq!(read.key_id(), key().public().id());
            read.verify_signature(&key().public()).unwrap();
        }
    }
}

#[test]
fn the_same_statement_gives_the_same_file() {
    assert_eq!(full().as_bytes(), full().as_bytes());
}

/// Version 1 is final: what was captured once stays readable, byte for byte.
///
/// The golden file is written by `ATTEST_BLESS=1 cargo test --test transcript`,
/// which is right only together with a new format version.
#[test]
fn the_layout_of_version_1_is_frozen() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/transcript-v1.cbor");
    if std::env::var_os("ATTEST_BLESS").is_some() {
        std::fs::write(path, full().as_bytes()).unwrap();
    }
    let golden = std::fs::read(path).unwrap();
    assert!(golden == full().as_bytes(), "the bytes of a transcript have changed");
    let read = Transcript::parse(golden).unwrap();
    assert_eq!(read.statement(), full().statement());
    read.verify_signature(&key().public()).unwrap();
}

#[test]
fn full_and_hashed_logits_have_the_same_root() {
    let full = full();
    let hashed = seal(LogitsMode::Hash, TraceMode::Steps, 0);
    assert_eq!(full.statement().logits.root, hashed.statement().logits.root);
    for row in 0..2 {
        assert_eq!(full.logits_digest(row), hashed.logits_digest(row));
        assert_eq!(full.logits_row(row).map(|row| row.len()), Some(2 * VOCAB));
        assert_eq!(hashed.logits_row(row), None);
    }
    assert_eq!(full.logits_digest(2), None);
}

#[test]
fn a_single_leaf_opens_against_the_signed_root() {
    let transcript = full();
    let shape = [1, VOCAB as u64];
    let header = |pass, index, name, shape| LeafHeader {
        kind: "trace",
        pass,
        index,
        name,
        dtype: Dtype::Bf16,
        shape,
    };
    let prefill = [3, VOCAB as u64];
    let headers = [
        header(0, 1, "layer.0", &prefill),
        header(0, 2, "layer.1", &prefill),
        header(1, 1, "layer.0", &shape),
        header(1, 2, "layer.1", &shape),
    ];
    let leaves: Vec<Digest> = (0..)
        .zip(&headers)
        .map(|(index, header)| header.hash(transcript.trace_digest(index).unwrap()))
        .collect();
    let root = transcript.statement().trace.root.unwrap();
    assert_eq!(merkle::root(&leaves), root);
    let path = merkle::inclusion_path(&leaves, 2).unwrap();
    assert!(merkle::verify_inclusion(leaves[2], 2, 4, &path, root));
    // Row H10: the same contents under another pass, step, name, type or shape.
    let content = transcript.trace_digest(2).unwrap();
    let moved = [
        header(0, 1, "layer.0", &shape),
        header(1, 2, "layer.0", &shape),
        header(1, 1, "layer.1", &shape),
        header(1, 1, "layer.0", &prefill),
        LeafHeader { dtype: Dtype::F32, ..headers[2].clone() },
        LeafHeader { kind: "logits", ..headers[2].clone() },
    ];
    for header in moved {
        assert!(!merkle::verify_inclusion(header.hash(content), 2, 4, &path, root));
    }
}

/// Row H11.
#[test]
fn a_cut_at_every_byte_is_refused_with_its_offset() {
    let file = full().as_bytes().to_vec();
    for length in 0..file.len() {
        let message = malformed(file[..length].to_vec());
        assert!(message.starts_with("byte "), "{length}: {message}");
    }
    let mut longer = file.clone();
    longer.push(0);
    let message = malformed(longer);
    assert_eq!(message, format!("byte {}: 1 bytes after the last section", file.len()));
}

#[test]
fn every_flipped_bit_is_refused() {
    let file = full().as_bytes().to_vec();
    let public = key().public();
    let (mut malformed, mut untrusted) = (0, 0);
    for bit in 0..file.len() * 8 {
        let mut flipped = file.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let refusal = match Transcript::parse(flipped) {
            Err(refusal) => refusal,
            Ok(read) => read.verify_signature(&public).unwrap_err(),
        };
        match refusal.class() {
            RefusalClass::Malformed => malformed += 1,
            RefusalClass::Untrusted => untrusted += 1,
            RefusalClass::Unreadable => panic!("{refusal}"),
        }
    }
    assert_eq!(malformed + untrusted, file.len() * 8);
    // At the least the signature's own bits and the time end here.
    assert!(untrusted >= 64 * 8 + 32, "{untrusted}");
}

/// Rows H3 to H6, for the scanner alone and as a signed statement.
#[test]
fn hostile_cbor_is_refused() {
    let deep = [vec![0x81; 200_000], vec![0x00]].concat();
    let cases: [(&[u8], &str, &str); 22] = [
        (b"\xa2\x61a\x01\x61a\x02", "byte 4: a map key appears twice", "duplicate key"),
        (b"\xa2\x02\x00\x01\x00", "byte 3: map keys are not in order", "wrong order"),
        (b"\xa2\x18\x64\x00\x20\x00", "", "bytewise order: 1864 before 20"),
        (b"\x18\x17", "byte 0: a number is not in its shortest form", "23 in two bytes"),
        (b"\x19\x00\xff", "byte 0: a number is not", "255 in three bytes"),
        (b"\x58\x01\x00", "byte 0: a number is not", "a length in two bytes"),
        (b"\x5f\x41\xaa\x41\xbb\xff", "byte 0: indefinite length", "bytes in pieces"),
        (b"\xbf\xff", "byte 0: indefinite length", "a map until a break"),
        (b"\x01\x00", "byte 1: data after the end", "a trailing byte"),
        (b"\x1c", "byte 0: reserved length code", "reserved"),
        (b"\xf5", "byte 0: floats and simple values", "true"),
        (b"\xf7", "byte 0: floats and simple values", "undefined"),
        (b"\xfa\x7f\xc0\x00\x01", "byte 0: floats and simple values", "a NaN with a payload"),
        (b"\x62\xc3\x28", "byte 1: text is not UTF-8", "bad text"),
        (b"\xc1\x00", "byte 0: a tag is not allowed here", "a tag"),
        (b"\x9b\x40\0\0\0\0\0\0\0", "byte 0: announces more", "row H4: 2^62 elements"),
        (b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff", "byte 0: announces more", "row H4: 2^63 bytes"),
        (b"\x9a\x06\xb4\x9d\x20", "byte 0: announces more", "row H4: 112 million elements"),
        (b"\xbb\x80\0\0\0\0\0\0\x01", "byte 0: announces more", "row H5: 2 x count overflows"),
        (&[0xc0; 300], "byte 0: a tag is not allowed here", "row H6: tags in tags"),
        (&deep, "byte 16: nested deeper than 16 levels", "row H6: arrays in arrays"),
        (b"", "byte 0: the data end inside an item", "nothing"),
    ];
    let original = full();
    for (bytes, expected, reason) in cases {
        match strict::check_item(bytes, 0) {
            Ok(()) => assert!(expected.is_empty(), "{reason}: accepted"),
            Err(refusal) => {
                let message = refusal.to_string();
                assert!(
                    !expected.is_empty() && message.starts_with(expected),
                    "{reason}: {message}"
                );
            }
        }
        malformed(resigned(bytes, &original));
        malformed(bytes.to_vec());
    }
}

/// What decides between the one form of item 0 and its many relatives.
#[test]
fn only_one_form_of_the_envelope_is_read() {
    const GOOD: &[(i64, Field)] = &[(1, Field::Int(-8)), (3, Field::Type), (4, Field::Kid)];
    let good = || header(GOOD);
    // (protected, unprotected, with tag, payload embedded, expected, reason)
    let cases: [(Vec<u8>, &[u8], bool, bool, &str, &str); 16] = [
        (good(), b"\xa0", true, true, "", "the one form"),
        (
            header(&[(1, Field::Int(-19)), (3, Field::Type), (4, Field::Kid)]),
            b"\xa0",
            true,
            true,
            "",
            "the newer number of the same algorithm",
        ),
        (good(), b"\xa0", false, true, "tag 18", "untagged"),
        (good(), b"\xa0", true, false, "the payload must be embedded", "detached"),
        (vec![], b"\xa1\x01\x27", true, true, "unprotected header must be empty", "row H1"),
        (vec![], b"\xa0", true, true, "alg is required", "empty protected header"),
        (vec![0xa0], b"\xa0", true, true, "alg is required", "row H1: A0 in the bytes"),
        (good(), b"\xa1\x01\x26", true, true, "unprotected header must be empty", "alg twice"),
        (
            good(),
            b"\xa1\x19\x01\x8a\x80",
            true,
            true,
            "unprotected header must be empty",
            "receipts, which this version does not read",
        ),
        (
            header(&[(1, Field::Int(-7)), (3, Field::Type), (4, Field::Kid)]),
            b"\xa0",
            true,
            true,
            "alg must be EdDSA",
            "ES256",
        ),
        (
            header(&[(1, Field::Int(-8)), (2, Field::Crit), (3, Field::Type), (4, Field::Kid)]),
            b"\xa0",
            true,
            true,
            "crit",
            "a critical text label",
        ),
        (
            header(&[(1, Field::Int(-8)), (3, Field::Type)]),
            b"\xa0",
            true,
            true,
            "kid must have 8 bytes",
            "no kid",
        ),
        (
            header(&[(1, Field::Int(-8)), (4, Field::Kid)]),
            b"\xa0",
            true,
            true,
            "content type",
            "no content type",
        ),
        (
            header(&[(1, Field::Int(-8)), (3, Field::Type), (4, Field::Kid), (99, Field::Int(1))]),
            b"\xa0",
            true,
            true,
            "other members",
            "a header that is not part of the form",
        ),
        (
            [b"\xa3\x18\x01".as_slice(), &good()[2..]].concat(),
            b"\xa0",
            true,
            true,
            "shortest form",
            "row H2: label 1 in two bytes",
        ),
        (
            [good().as_slice(), b"\x00"].concat(),
            b"\xa0",
            true,
            true,
            "data after the end",
            "bytes after the header map",
        ),
    ];
    let original = full();
    let item_0_len = Envelope::open(original.as_bytes()).unwrap().end;
    for (protected, unprotected, tagged, embedded, expected, reason) in cases {
        let mut file = envelope(&protected, unprotected, original.statement_bytes(), embedded);
        if !tagged {
            file.remove(0);
        }
        file.extend_from_slice(&original.as_bytes()[item_0_len..]);
        match Transcript::parse(file) {
            Ok(read) => {
                assert!(expected.is_empty(), "{reason}: accepted");
                read.verify_signature(&key().public()).unwrap();
                // The identity is the statement's, whatever the envelope.
                assert_eq!(read.digest(), original.digest());
            }
            Err(refusal) => {
                let message = refusal.to_string();
                assert!(!expected.is_empty() && message.contains(expected), "{reason}: {message}");
                assert_eq!(refusal.class(), RefusalClass::Malformed);
            }
        }
    }
}

/// Row H2: the length of the protected header in three bytes instead of two.
#[test]
fn a_long_length_prefix_is_refused_before_the_signature_is_computed() {
    let mut file = full().as_bytes().to_vec();
    assert_eq!(file[2], 0x58);
    file.splice(2..3, [0x59, 0x00]);
    assert_eq!(malformed(file), "byte 2: a number is not in its shortest form");
}

#[derive(Clone, Copy)]
enum Field {
    Int(i64),
    Type,
    Kid,
    Crit,
}

fn header(fields: &[(i64, Field)]) -> Vec<u8> {
    let value = |field| match field {
        Field::Int(number) => Value::from(number),
        Field::Type => Value::from("application/attest-statement+cbor"),
        Field::Kid => Value::Bytes(key().public().id().0.to_vec()),
        Field::Crit => Value::Array(vec![Value::from("x-unknown")]),
    };
    let pairs = fields.iter().map(|&(label, field)| (Value::from(label), value(field)));
    encode(&Value::Map(pairs.collect()))
}

/// Signs by hand, as RFC 9052 section 4.4 says.
fn envelope(protected: &[u8], unprotected: &[u8], payload: &[u8], embedded: bool) -> Vec<u8> {
    let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
    let signed = encode(&Value::Array(vec![
        Value::from("Signature1"),
        bytes(protected),
        bytes(SIGNING_CONTEXT),
        bytes(payload),
    ]));
    let mut file = vec![0xd2, 0x84];
    file.extend(encode(&bytes(protected)));
    file.extend_from_slice(unprotected);
    file.extend(if embedded { encode(&bytes(payload)) } else { vec![0xf6] });
    file.extend(encode(&bytes(&key().sign(&signed))));
    file
}

#[test]
fn a_signature_in_another_context_is_not_a_transcripts() {
    let original = full();
    let payload = original.statement_bytes();
    let end = Envelope::open(original.as_bytes()).unwrap().end;
    let signed = encode(&Value::Array(vec![
        Value::from("Signature1"),
        Value::Bytes(header(&[(1, Field::Int(-8)), (3, Field::Type), (4, Field::Kid)])),
        Value::Bytes(vec![]),
        Value::Bytes(payload.to_vec()),
    ]));
    let mut file = original.as_bytes().to_vec();
    file[end - 64..end].copy_from_slice(&key().sign(&signed));
    let read = Transcript::parse(file).unwrap();
    let refusal = read.verify_signature(&key().public()).unwrap_err();
    assert!(matches!(refusal, TranscriptError::BadSignature { .. }));
    assert_eq!(refusal.class(), RefusalClass::Untrusted);
}

#[test]
fn another_key_is_refused_even_with_the_same_id_in_the_envelope() {
    let other = PrivateKey::from_seed(&[8; 32]);
    let refusal = full().verify_signature(&other.public()).unwrap_err();
    assert!(matches!(refusal, TranscriptError::OtherKey { .. }), "{refusal}");
    assert_eq!(refusal.class(), RefusalClass::Untrusted);
}

/// Row H7.
#[test]
fn the_signature_that_fits_every_message_fits_none() {
    let mut identity = [0; 32];
    identity[0] = 1;
    assert!(PublicKey::from_bytes(&identity).unwrap_err().to_string().contains("weak"));

    let original = full();
    let end = Envelope::open(original.as_bytes()).unwrap().end;
    let mut file = original.as_bytes().to_vec();
    file[end - 64..end].fill(0);
    file[end - 64] = 1;
    let read = Transcript::parse(file).unwrap();
    assert!(read.verify_signature(&key().public()).is_err());
}

/// Rows H8 and H10.
#[test]
fn sections_of_another_transcript_do_not_fit() {
    let (ours, others) = (full(), seal(LogitsMode::Full, TraceMode::Steps, 1));
    let end = |transcript: &Transcript| Envelope::open(transcript.as_bytes()).unwrap().end;
    let spliced = [&ours.as_bytes()[..end(&ours)], &others.as_bytes()[end(&others)..]].concat();
    let message = malformed(spliced);
    assert!(
        message.starts_with("section logits does not match the statement: sha256"),
        "{message}"
    );

    let trace_start = ours.as_bytes().len() - ours.section("trace").unwrap().len() - 2;
    let spliced = [&ours.as_bytes()[..trace_start], &others.as_bytes()[trace_start..]].concat();
    let message = malformed(spliced);
    assert!(message.starts_with("section trace does not match the statement: sha256"), "{message}");

    let swapped = [
        &ours.as_bytes()[..end(&ours)],
        &ours.as_bytes()[trace_start..],
        &ours.as_bytes()[end(&ours)..trace_start],
    ]
    .concat();
    assert!(malformed(swapped).contains("section logits has 128 bytes, the statement says 16"));
}

/// A signer whose statement does not belong to its sections.
#[test]
fn rows_in_another_order_do_not_give_the_root() {
    let (mut statement, mut contents) = build(LogitsMode::Full, TraceMode::None, 0);
    contents[0].rotate_left(2 * VOCAB);
    statement.sections[0].sha256 = attest::num::sha256(&[&contents[0]]);
    let refusal = Transcript::seal(&statement, &contents, &key()).unwrap_err();
    let message = refusal.to_string();
    assert!(message.starts_with("section logits does not match the statement: root"), "{message}");

    // Rows at other positions than the passes say.
    let (mut statement, contents) = build(LogitsMode::Full, TraceMode::None, 0);
    statement.passes[0].token_count = 2;
    statement.passes[1].start_position = 2;
    let refusal = Transcript::seal(&statement, &contents, &key()).unwrap_err();
    assert!(refusal.to_string().contains("does not match the statement: root"), "{refusal}");
}

/// Row H4, in the numbers of a statement that is signed and well formed.
#[test]
fn huge_numbers_in_a_signed_statement_are_refused() {
    type Change = fn(&mut Statement);
    let cases: [(Change, &str); 6] = [
        (
            |s| s.sections[0].len_bytes = 1 << 62,
            "section logits of 2 leaves in 4611686018427387904",
        ),
        (|s| s.logits.vocab = 1 << 62, "2 leaves are due"),
        (|s| s.logits.count = 1 << 62, "the passes have 2 logits rows"),
        (|s| s.passes[1].token_count = u64::MAX, "pass 1 ends past 2^64"),
        (|s| s.trace.count = 1 << 62, "section trace of 4 leaves"),
        (
            |s| {
                s.passes[1].token_count = 1 << 62;
                s.passes[1].logits_rows = 1 << 62;
                s.logits.count = (1 << 62) + 1;
            },
            "leaves are due",
        ),
    ];
    for (change, expected) in cases {
        let (mut statement, contents) = build(LogitsMode::Full, TraceMode::Steps, 0);
        change(&mut statement);
        let refusal = Transcript::seal(&statement, &contents, &key()).unwrap_err();
        assert!(refusal.to_string().contains(expected), "{refusal}");
    }
    // Consistent with itself, but the file does not have the bytes.
    let (mut statement, contents) = build(LogitsMode::Hash, TraceMode::None, 0);
    statement.passes[1].token_count = 1 << 50;
    statement.passes[1].logits_rows = 1 << 50;
    statement.logits.count = (1 << 50) + 1;
    statement.sections[0].leaf_count = (1 << 50) + 1;
    statement.sections[0].len_bytes = 32 * ((1 << 50) + 1);
    let refusal = Transcript::seal(&statement, &contents, &key()).unwrap_err();
    assert!(matches!(refusal, TranscriptError::SectionLength { .. }), "{refusal}");

    let mut file = Envelope::seal(full().statement_bytes(), &key());
    let offset = file.len();
    file.extend_from_slice(b"\x5b\x40\0\0\0\0\0\0\0");
    let message = malformed(file);
    assert_eq!(
        message,
        format!("byte {offset}: announces more elements or bytes than the data hold")
    );
}

#[test]
fn extensions_survive_and_critical_keys_do_not() {
    let (mut statement, contents) = build(LogitsMode::Full, TraceMode::Steps, 0);
    let value = Value::Array(vec![Value::from("quote"), Value::Bytes(vec![1, 2])]);
    statement.extensions.push(Extension { key: 64, value });
    let sealed = Transcript::seal(&statement, &contents, &key()).unwrap();
    assert_eq!(sealed.statement(), &statement);

    let mut pairs = statement_value(&full());
    pairs.push((Value::from(21), Value::from(1)));
    let message = malformed(resigned(&encode(&Value::Map(pairs)), &full()));
    assert!(message.contains("unknown key 21"), "{message}");
    // A float cannot hide in an extension.
    statement.extensions[0].value = Value::Float(1.0);
    assert!(Transcript::seal(&statement, &contents, &key()).is_err());
}

/// Row H9, and the published schema against the decoder: both refuse a
/// statement without a field, or with a field of another type.
#[test]
fn the_schema_and_the_decoder_agree() {
    let original = full();
    assert!(fits("statement", original.statement_bytes()));
    let pairs = statement_value(&original);
    assert_eq!(pairs.len(), 20);
    for index in 0..pairs.len() {
        let number = index + 1;
        let mut missing = pairs.clone();
        missing.remove(index);
        let missing = encode(&Value::Map(missing));
        let optional = number == 20;
        assert_eq!(fits("statement", &missing), optional, "without {number}");
        assert_eq!(Transcript::parse(resigned(&missing, &original)).is_ok(), optional, "{number}");

        for other in [Value::from(1u64 << 40), Value::from("other"), Value::Array(vec![])] {
            let mut changed = pairs.clone();
            let same_type =
                std::mem::discriminant(&changed[index].1) == std::mem::discriminant(&other);
            if same_type && !matches!(number, 1 | 13) {
                continue;
            }
            changed[index].1 = other;
            let changed = encode(&Value::Map(changed));
            assert!(!fits("statement", &changed), "schema accepts another type of {number}");
            malformed(resigned(&changed, &original));
        }
    }
}

#[test]
fn the_schema_fits_every_mode_and_item_0() {
    for logits in [LogitsMode::Full, LogitsMode::Hash] {
        for trace in [TraceMode::None, TraceMode::Layers, TraceMode::Steps] {
            let (mut statement, contents) = build(logits, trace, 0);
            statement.environment = Environment { engine: Engine::Emulator, gpu: None };
            statement.dispatch.iter_mut().for_each(|row| row.algorithm = None);
            statement.dispatch.dedup();
            statement.nonce = None;
            let sealed = Transcript::seal(&statement, &contents, &key()).unwrap();
            assert!(fits("statement", sealed.statement_bytes()));
            let end = Envelope::open(sealed.as_bytes()).unwrap().end;
            assert!(fits("envelope", &sealed.as_bytes()[..end]));
        }
    }
    let original = full();
    let protected = header(&[(1, Field::Int(-8)), (3, Field::Type), (4, Field::Kid)]);
    let other = header(&[(1, Field::Int(-7)), (3, Field::Type), (4, Field::Kid)]);
    let payload = original.statement_bytes();
    assert!(fits("envelope", &envelope(&protected, b"\xa0", payload, true)));
    assert!(!fits("envelope", &envelope(&other, b"\xa0", payload, true)));
    assert!(!fits("envelope", &envelope(&protected, b"\xa0", payload, false)));
    assert!(!fits("envelope", &envelope(&protected, b"\xa0", b"\xa0", true)));
    assert!(!fits("envelope", &envelope(&protected, b"\xa1\x01\x26", payload, true)));
    let leaf = LeafHeader {
        kind: "trace",
        pass: 0,
        index: 12,
        name: "layer.0",
        dtype: Dtype::Bf16,
        shape: &[3, 4],
    };
    assert!(fits("leaf-header", &leaf.to_bytes()));
    assert!(!fits("leaf-header", &encode(&Value::Array(vec![Value::from("trace")]))));
}

fn fits(rule: &str, bytes: &[u8]) -> bool {
    let schema = format!("start = {rule}\n{CDDL}");
    cddl::validate_cbor_from_slice(&schema, bytes, None).is_ok()
}

/// Follows keys of maps and indices of arrays.
fn at<'a>(value: &'a mut Value, path: &[u64]) -> &'a mut Value {
    let Some((&step, rest)) = path.split_first() else { return value };
    let next = match value {
        Value::Map(pairs) => {
            let key = Value::from(step);
            &mut pairs.iter_mut().find(|(found, _)| *found == key).unwrap().1
        }
        Value::Array(items) => &mut items[step as usize],
        other => panic!("no step into {other:?}"),
    };
    at(next, rest)
}

#[test]
fn the_schema_and_the_decoder_agree_inside_the_fields() {
    let original = full();
    let short = || Value::Bytes(vec![0; 31]);
    let cases: [(&[u64], Value, &str); 14] = [
        (&[2, 1], Value::from(1), "tool.name must be text"),
        (&[4, 3], short(), "model.digest must be a byte string of 32 bytes"),
        (&[4, 2, 1, 1], Value::from(1), "model.files[1].path must be text"),
        (&[4, 2, 1, 2], Value::from(-1), "model.files[1].len_bytes must be an unsigned integer"),
        (&[5, 2], short(), "profile.digest must be"),
        (&[7, 1], Value::from("tpu"), "environment.engine must be one of \"cuda\" \"emulator\""),
        (&[7, 2, 7, 0, 2], short(), "environment.gpu.kernels[0].sha256 must be"),
        (&[11, 2], Value::from(1u64 << 32), "tokens_in[2] must be an unsigned integer below 2^32"),
        (&[14, 0, 6, 1], Value::from(1u64 << 32), "dispatch[0].algorithm.id must be"),
        (&[15, 1, 3], short(), "passes[1].plan_digest must be"),
        (&[16, 1], Value::from("half"), "logits.mode must be one of"),
        (&[16, 4], Value::from("f64"), "logits.dtype must be one of"),
        (&[17, 1], Value::from("all"), "trace.mode must be one of"),
        (&[18, 1, 1], Value::from("weights"), "section \"weights\" where \"trace\" is due"),
    ];
    for (path, other, expected) in cases {
        let mut changed = Value::Map(statement_value(&original));
        *at(&mut changed, path) = other;
        let changed = encode(&changed);
        assert!(!fits("statement", &changed), "the schema accepts {expected}");
        let message = malformed(resigned(&changed, &original));
        assert!(message.contains(expected), "{message}");
    }
    // Inner maps are closed: not even an optional key is read there.
    let maps: [&[u64]; 14] = [
        &[2],
        &[4],
        &[4, 2, 0],
        &[5],
        &[6],
        &[7],
        &[7, 2],
        &[7, 2, 7, 0],
        &[9],
        &[14, 0],
        &[14, 0, 6],
        &[15, 0],
        &[16],
        &[18, 0],
    ];
    for path in maps {
        let mut changed = Value::Map(statement_value(&original));
        let Value::Map(pairs) = at(&mut changed, path) else { panic!("no map at {path:?}") };
        pairs.push((Value::from(64), Value::from(0)));
        let changed = encode(&changed);
        assert!(!fits("statement", &changed), "the schema accepts a key in {path:?}");
        assert!(malformed(resigned(&changed, &original)).contains("unknown key 64"));
    }
}

/// Rule C8: optional, of two numbers, and nothing else.
#[test]
fn the_batch_of_a_pass_is_optional_and_closed() {
    let (mut statement, contents) = build(LogitsMode::Full, TraceMode::Steps, 0);
    let without = Transcript::seal(&statement, &contents, &key()).unwrap();
    statement.passes[1].batch = Some(Batch { passes: 2, rows: 5 });
    let sealed = Transcript::seal(&statement, &contents, &key()).unwrap();
    assert!(fits("statement", sealed.statement_bytes()));
    assert_eq!(sealed.statement(), &statement);
    // Key 5 and a map of two small numbers: where there is no batch, there is no byte.
    assert_eq!(sealed.statement_bytes().len(), without.statement_bytes().len() + 6);

    let rows =
        |value: Value| Value::Map(vec![(Value::from(1), Value::from(2)), (Value::from(2), value)]);
    let key_3 = [(1, 2), (2, 5), (3, 0)].map(|(key, value)| (Value::from(key), Value::from(value)));
    let cases = [
        (Value::from(2), "passes[1].batch must be a map"),
        (Value::Map(vec![(Value::from(1), Value::from(2))]), "passes[1].batch.rows is missing"),
        (rows(Value::from(-1)), "passes[1].batch.rows must be an unsigned integer"),
        (rows(Value::from("5")), "passes[1].batch.rows must be an unsigned integer"),
        (Value::Map(key_3.to_vec()), "passes[1].batch has the unknown key 3"),
    ];
    for (other, expected) in cases {
        let mut changed = Value::Map(statement_value(&sealed));
        *at(&mut changed, &[15, 1, 5]) = other;
        let changed = encode(&changed);
        assert!(!fits("statement", &changed), "the schema accepts {expected}");
        let message = malformed(resigned(&changed, &sealed));
        assert!(message.contains(expected), "{message}");
    }
}

/// Values of the subset that statements are made of.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(Value::from),
        (0u64..300).prop_map(Value::from),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
        ".{0,10}".prop_map(Value::Text),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(any::<u16>(), inner, 0..6).prop_map(|map| {
                let pair = |(key, value)| (Value::from(key), value);
                Value::Map(map.into_iter().map(pair).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_scanner_accepts_whatever_is_in_canonical_form(value in values()) {
        prop_assert_eq!(strict::check_item(&encode(&value), 0), Ok(()));
    }

    #[test]
    fn what_the_scanner_accepts_has_no_second_spelling(
        value in values(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = encode(&value);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if strict::check_item(&bytes, 0).is_ok() {
            let read: Value = ciborium::from_reader(bytes.as_slice()).unwrap();
            prop_assert_eq!(encode(&read), bytes);
        }
    }

    #[test]
    fn random_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Transcript::parse(bytes.clone()).is_err());
        let original = full();
        prop_assert!(Transcript::parse(resigned(&bytes, &original)).is_err());
        let _ = strict::check_item(&bytes, 0);
    }

    #[test]
    fn damaged_transcripts_are_refused_without_a_panic(
        at in any::<prop::sample::Index>(),
        removed in 0usize..20,
        inserted in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let original = full();
        let mut file = original.as_bytes().to_vec();
        let at = at.index(file.len());
        let end = (at + removed).min(file.len());
        file.splice(at..end, inserted);
        let same = file == original.as_bytes();
        let accepted = Transcript::parse(file)
            .is_ok_and(|read| read.verify_signature(&key().public()).is_ok());
        prop_assert_eq!(accepted, same);
    }
}
