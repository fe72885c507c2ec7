//! What a fuzz target does with an input: one public reader, and what must hold of
//! whatever it accepts.
//!
//! Included by the fuzz targets and by `tests/fuzz_corpus`, which replays `fuzz/seeds`
//! without a fuzzer. Each body says whether the input was accepted.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // each target uses its own body

pub mod folder;
pub mod openings;

use attest::interop::dsse::Envelope as Dsse;
use attest::interop::in_toto::Statement as Export;
use attest::model::weights::{OUTPUT, architecture};
use attest::model::{Config, Tokenizer};
use attest::num::Digest;
use attest::transcript::cose::{CONTENT_TYPE, Envelope};
use attest::transcript::key::PublicKey;
use attest::transcript::strict;
use attest::transcript::{LOGITS_SECTION, Statement, TRACE_SECTION, Transcript};
use attest::verify::trust::{Claim, Role, TrustStore, rfc3339, unix_time};
use ciborium::Value;

/// A body: whether the input was accepted.
pub type Body = fn(&[u8]) -> bool;

/// Every body under the name of its target and its folder of seeds.
pub const ALL: [(&str, Body); 11] = [
    ("scanner", scanner),
    ("cose", cose),
    ("statement", statement),
    ("transcript", transcript),
    ("openings", openings::openings),
    ("trust_store", trust_store),
    ("safetensors_header", folder::safetensors_header),
    ("index", folder::index),
    ("tokenizer", tokenizer),
    ("config", config),
    ("export", export),
];

/// Runs the body of a target.
pub fn run(target: &str, input: &[u8]) -> bool {
    let body = ALL.iter().find(|(name, _)| *name == target).map(|(_, body)| body);
    body.expect("a name of `ALL`")(input)
}

/// The scanner of CBOR: what it lets through, a decoder reads and writes back unchanged.
pub fn scanner(input: &[u8]) -> bool {
    let accepted = strict::check_item(input, 0).is_ok();
    assert_eq!(accepted, strict::item_end(input, 0).ok() == Some(input.len()));
    if let Ok(range) = strict::byte_string(input, 0) {
        assert!(range.start <= range.end && range.end <= input.len());
        let whole = range.end == input.len();
        assert!(!whole || accepted, "a whole byte string is an item");
    }
    if accepted {
        let value: Value = ciborium::from_reader(input).expect("a decoder reads what passes");
        let mut again = Vec::new();
        ciborium::into_writer(&value, &mut again).unwrap();
        assert_eq!(again, input, "one spelling");
    }
    accepted
}

/// The signed envelope: written again by hand, it has the same bytes.
pub fn cose(input: &[u8]) -> bool {
    let Ok(envelope) = Envelope::open(input) else { return false };
    let payload = &input[envelope.payload.clone()];
    let head = |len: usize| match len {
        0..=0x17 => vec![0x40 | len as u8],
        0x18..=0xff => vec![0x58, len as u8],
        0x100..=0xffff => [&[0x59], &(len as u16).to_be_bytes()[..]].concat(),
        _ => [&[0x5a], &(len as u32).to_be_bytes()[..]].concat(),
    };
    let with = |algorithm: &[u8]| {
        let key_id = &[&[0x04, 0x48], &envelope.key_id.0[..]].concat();
        let content_type = [&[0x03, 0x78, 0x21], CONTENT_TYPE.as_bytes()].concat();
        let protected = [&[0xa3, 0x01], algorithm, &content_type, key_id].concat();
        let parts: [&[u8]; 8] = [
            &[0xd2, 0x84],
            &head(protected.len()),
            &protected,
            &[0xa0],
            &head(payload.len()),
            payload,
            &head(64),
            envelope.signature(),
        ];
        parts.concat()
    };
    let (eddsa, ed25519) = (with(&[0x27]), with(&[0x32]));
    assert!([eddsa, ed25519].contains(&input[..envelope.end].to_vec()), "one spelling");
    // Nobody's key is among the inputs, so a signature that fits is a forgery; the seed's
    // own is of key 07….
    let stranger = PublicKey::from_bytes(&STRANGER).unwrap();
    assert!(!envelope.is_signed_by(&stranger));
    true
}

/// The statement: written again, it has the same bytes.
pub fn statement(input: &[u8]) -> bool {
    let Ok(statement) = Statement::from_bytes(input, 0) else { return false };
    assert_eq!(statement.to_bytes().unwrap(), input, "one spelling");
    assert_eq!(Statement::from_bytes(input, 7).unwrap(), statement);
    true
}

/// The whole file: its parts are where it says, and every row can be read.
pub fn transcript(input: &[u8]) -> bool {
    let Ok(transcript) = Transcript::parse(input.to_vec()) else { return false };
    assert!(input.starts_with(transcript.item_0()));
    assert!(statement(transcript.statement_bytes()));
    assert_eq!(transcript.len_bytes(), input.len() as u64);
    let stated = transcript.statement();
    for (kind, count) in
        [(LOGITS_SECTION, stated.logits.count), (TRACE_SECTION, stated.trace.count)]
    {
        let is_there = transcript.section(kind).is_some();
        if kind == LOGITS_SECTION {
            assert_ne!(is_there, transcript.withholds(kind));
            let rows = (0..count).filter(|&row| transcript.logits_digest(row).is_some()).count();
            assert_eq!(rows as u64, if is_there { count } else { 0 });
        }
    }
    assert!(transcript.logits_row(stated.logits.count).is_none());
    assert!(transcript.trace_digest(stated.trace.count).is_none());
    true
}

/// The trust file: no key is weak, every window is one, and no claim makes it panic.
pub fn trust_store(input: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(input) else { return false };
    let Ok(store) = TrustStore::from_toml(text) else { return false };
    for entry in store.keys() {
        assert_eq!(PublicKey::from_bytes(&entry.key.to_bytes()).unwrap(), entry.key);
        let revoked = entry.revocation.as_ref().map(|revocation| revocation.at);
        for time in [entry.valid_from, entry.valid_until, revoked].into_iter().flatten() {
            assert_eq!(unix_time(&rfc3339(time)), Ok(time));
            for role in [Role::Prover, Role::Auditor, Role::Publisher] {
                let claim = Claim { model_name: "m", model_digest: Digest([0; 32]), time, role };
                if let Ok(found) = store.judge(&entry.key, &claim) {
                    assert_eq!((found.key, found.role), (entry.key, role));
                    assert!(
                        store.keys().iter().all(|e| e.key != found.key || e.revocation.is_none())
                    );
                }
            }
        }
    }
    true
}

/// The tokenizer: its ids have a row in the embedding, and its own ids give a text.
pub fn tokenizer(input: &[u8]) -> bool {
    const ROWS: usize = 64;
    let Ok(tokenizer) = Tokenizer::from_json(input, ROWS) else { return false };
    for text in ["", "ab", "a b\u{301}<|end|>\u{0}\n"] {
        // The library may refuse a text.
        let Ok(ids) = tokenizer.encode(text.as_bytes()) else { continue };
        assert!(ids.iter().all(|&id| (id as usize) < ROWS), "{text:?} gives {ids:?}");
        let _ = tokenizer.decode(&ids);
    }
    let _ = (tokenizer.decode(&[0, u32::MAX]), tokenizer.encode(b"\xff"));
    true
}

/// The configuration: sizes that a plan can be built from.
pub fn config(input: &[u8]) -> bool {
    let Ok(config) = Config::from_json(input) else { return false };
    assert!(config.num_attention_heads.is_multiple_of(config.num_key_value_heads));
    assert_eq!(config.query_size(), config.num_attention_heads * config.head_dim);
    assert!(config.eos_token_id.iter().all(|&id| (id as usize) < config.vocab_size));
    let mut count = 0;
    for (name, shape) in architecture(&config) {
        let elements = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
        assert!(elements.is_some_and(|n| n > 0 && n.checked_mul(4).is_some()), "{name} {shape:?}");
        count += 1;
    }
    assert_eq!(count, 3 + 11 * config.num_hidden_layers, "with {OUTPUT}");
    true
}

/// The DSSE envelope and its statement: written again and read, they are the same.
pub fn export(input: &[u8]) -> bool {
    // The payload is fuzzed by itself, too: base64 would hide it from the fuzzer.
    let statement = |bytes: &[u8]| {
        let Ok(statement) = Export::from_json(bytes) else { return false };
        assert_eq!(Export::from_json(&statement.to_json()).unwrap(), statement);
        true
    };
    if statement(input) {
        return true;
    }
    let Ok(envelope) = Dsse::from_json(input) else { return false };
    assert_eq!(Dsse::from_json(envelope.to_json().as_bytes()).unwrap(), envelope);
    let stranger = PublicKey::from_bytes(&STRANGER).unwrap();
    for signature in &envelope.signatures {
        assert!(!envelope.is_signed_by(signature, &stranger));
    }
    statement(&envelope.payload)
}

/// RFC 8032 section 7.1, TEST 1: a key that signed none of the seeds.
const STRANGER: [u8; 32] = [
    0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
    0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a,
];
