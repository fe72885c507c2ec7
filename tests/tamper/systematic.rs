//! Every value of a statement changed in every way, signed again by the trusted
//! key: nothing panics, and what still verifies differs in claims alone.

use std::sync::OnceLock;

use attest::transcript::cose::Envelope;
use attest::transcript::statement::{Algorithm, Engine, FinishReason, LogitsMode, Statement};
use attest::transcript::{Transcript, TranscriptError};
use attest::verify::report::Verdict;
use ciborium::Value;
use rayon::prelude::*;

use crate::lying::pretended;
use crate::support::{Making, check, key, trust};

fn original() -> &'static Transcript {
    static ORIGINAL: OnceLock<Transcript> = OnceLock::new();
    ORIGINAL.get_or_init(|| {
        let making = Making { logits: LogitsMode::Hash, max_new_tokens: 2, ..Making::default() };
        pretended(&making).seal()
    })
}

/// The statement with every claim set to one value.
fn without_claims(statement: &Statement) -> Statement {
    let mut bare = statement.clone();
    bare.tool.name.clear();
    bare.tool.version.clear();
    bare.model.name.clear();
    bare.model.oms_root = None;
    bare.claimed_time = 0;
    bare.nonce = None;
    bare.extensions.clear();
    if bare.finish == FinishReason::Stop {
        bare.sampling.max_new_tokens = 0;
    }
    // That the stated engine ran is a claim, and so is everything about it.
    bare.environment.engine = Engine::Emulator;
    bare.environment.gpu = None;
    for row in &mut bare.dispatch {
        row.algorithm = None::<Algorithm>;
    }
    bare.dispatch.dedup();
    bare
}

/// Signs a payload as it is and verifies it with the sections of the original.
fn verify_signed(payload: &[u8]) -> (Verdict, Result<Statement, TranscriptError>) {
    let file = original().as_bytes();
    let sections = &file[Envelope::open(file).unwrap().end..];
    let file = [&Envelope::seal(payload, &key()), sections].concat();
    let verdict = check(&file, &trust(), None).report.verdict();
    (verdict, Transcript::parse(file).map(|transcript| transcript.statement().clone()))
}

/// Requires one changed payload to be refused, or to differ in claims alone.
fn judge(payload: &[u8], what: &str) -> Verdict {
    let (verdict, statement) = verify_signed(payload);
    if verdict == Verdict::Verified {
        let (changed, honest) = (statement.unwrap(), original().statement());
        assert!(changed != *honest, "{what}: nothing was changed");
        assert!(
            without_claims(&changed) == without_claims(honest),
            "{what} verifies, though it is no claim: {changed:?}"
        );
    }
    verdict
}

fn change_bits(bits: impl Iterator<Item = usize>) {
    let bits: Vec<usize> = bits.collect();
    let payload = original().statement_bytes();
    let change = |&bit: &usize| {
        let mut changed = payload.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        judge(&changed, &format!("bit {} of byte {}", bit % 8, bit / 8))
    };
    let seen: Vec<Verdict> = bits.par_iter().map(change).collect();
    for verdict in [Verdict::Verified, Verdict::Mismatch, Verdict::Malformed, Verdict::Incomplete] {
        let count = seen.iter().filter(|&&found| found == verdict).count();
        println!("{}: {count} of {}", verdict.word(), seen.len());
        assert!(count > 0, "no change leads to {verdict:?}");
    }
}

#[test]
fn a_bit_of_every_third_byte_is_found_or_a_claim() {
    // The bit moves on, so that neighbours are hit in different places.
    let bytes = original().statement_bytes().len();
    change_bits((0..bytes).step_by(3).map(|byte| 8 * byte + byte % 8));
}

#[test]
#[ignore = "minutes; a_bit_of_every_third_byte_is_found_or_a_claim is a sample of it"]
fn every_bit_is_found_or_a_claim() {
    change_bits(0..8 * original().statement_bytes().len());
}

/// Every statement that has one value of `value` replaced by something extreme.
#[allow(clippy::wildcard_enum_match_arm)] // an open enum of another crate
fn extremes(value: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    match value {
        Value::Integer(integer) => {
            let own = i128::from(*integer);
            let near = [own - 1, own + 1, 0, 1, 1 << 20, 1 << 31, (1 << 32) - 1, 1 << 32];
            let far = [1 << 63, (1 << 64) - 1];
            let others = near.into_iter().chain(far).filter(|&n| n != own && n >= 0);
            let integers = others.filter_map(|n| n.try_into().ok().map(Value::Integer));
            all.extend(integers.map(|value| (format!("= {value:?}"), value)));
        }
        Value::Text(text) => {
            for changed in [String::new(), format!("{text} "), text.repeat(40)] {
                all.push((format!("= {} characters", changed.len()), Value::Text(changed)));
            }
        }
        Value::Bytes(bytes) => {
            for changed in [vec![], vec![0; bytes.len()], [&bytes[..], &[0]].concat()] {
                all.push((format!("= {} bytes", changed.len()), Value::Bytes(changed)));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                for (what, changed) in extremes(item) {
                    let mut items = items.clone();
                    items[index] = changed;
                    all.push((format!("[{index}]{what}"), Value::Array(items)));
                }
            }
            let mut shapes = vec![("none", vec![])];
            if let Some((last, rest)) = items.split_last() {
                shapes.push(("one less", rest.to_vec()));
                shapes.push(("last twice", [items, std::slice::from_ref(last)].concat()));
                shapes.push(("reversed", items.iter().rev().cloned().collect()));
            }
            let changed = shapes.into_iter().filter(|(_, shape)| shape != items);
            all.extend(changed.map(|(what, shape)| (format!(" {what}"), Value::Array(shape))));
        }
        Value::Map(entries) => {
            for (index, (key, item)) in entries.iter().enumerate() {
                let name = key.as_integer().map_or(-1, i128::from);
                for (what, changed) in extremes(item) {
                    let mut entries = entries.clone();
                    entries[index].1 = changed;
                    all.push((format!(".{name}{what}"), Value::Map(entries)));
                }
                let mut fewer = entries.clone();
                fewer.remove(index);
                all.push((format!(".{name} missing"), Value::Map(fewer)));
            }
        }
        // The reader refuses all others before it looks at fields.
        other => panic!("a statement holds integers, texts, bytes, arrays and maps: {other:?}"),
    }
    all
}

#[test]
fn extreme_values_are_found_or_claims() {
    let statement: Value = ciborium::from_reader(original().statement_bytes()).unwrap();
    let cases = extremes(&statement);
    assert!(cases.len() > 1000, "{} cases", cases.len());
    cases.par_iter().for_each(|(what, changed)| {
        let mut payload = Vec::new();
        ciborium::into_writer(changed, &mut payload).unwrap();
        judge(&payload, what);
    });
}
