//! Files changed by somebody who does not hold the key.

use std::sync::OnceLock;

use attest::isa::mma::Simd;
use attest::transcript::Transcript;
use attest::transcript::cose::Envelope;
use attest::transcript::statement::TraceMode;
use attest::verify::report::Verdict;
use attest::verify::trust::TrustStore;
use attest::verify::{Anchor, Request, Verified, verify};

use crate::support::{self, Making, failures, other_key};

fn original() -> &'static Transcript {
    static ORIGINAL: OnceLock<Transcript> = OnceLock::new();
    ORIGINAL.get_or_init(|| Making { trace: TraceMode::Layers, ..Making::default() }.make().seal())
}

fn section_start(file: &[u8]) -> usize {
    Envelope::open(file).unwrap().end
}

/// Verifies a file that must be refused before any model is opened.
fn refuse(file: Vec<u8>, store: &TrustStore) -> Verified {
    let done = verify(Request {
        file: file.into(),
        anchor: Anchor::Store(store),
        nonce: None,
        challenge: None,
        simd: Simd::detect(),
        open_model: &|_| panic!("a model is opened for a file that nobody trusted signed"),
        progress: &mut |_| panic!("something is executed"),
        diagnosing: None,
    });
    assert!(!done.report.verdict().word().contains("VERIFIED"));
    assert!(done.text.is_none() && done.claims.is_empty());
    done
}

fn malformed(file: Vec<u8>, what: &str) -> String {
    let done = refuse(file, &support::trust());
    assert_eq!(done.report.verdict(), Verdict::Malformed, "{what}");
    failures(&done)[0].2.clone()
}

#[test]
fn every_bit_of_item_0_matters() {
    let file = original().as_bytes();
    let store = support::trust();
    let end = section_start(file);
    let mut seen = [0; 2];
    for bit in 0..end * 8 {
        let mut forged = file.to_vec();
        forged[bit / 8] ^= 1 << (bit % 8);
        let verdict = refuse(forged, &store).report.verdict();
        if verdict == Verdict::Malformed {
            seen[0] += 1;
        } else {
            assert_eq!(verdict, Verdict::Untrusted, "bit {} of byte {}", bit % 8, bit / 8);
            seen[1] += 1;
        }
    }
    // Both ways of being refused exist, and every bit took one of them.
    assert_eq!(seen[0] + seen[1], end * 8);
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn every_byte_of_the_sections_matters() {
    let file = original().as_bytes();
    for at in section_start(file)..file.len() {
        let mut forged = file.to_vec();
        forged[at] ^= 1 << (at % 8);
        malformed(forged, &format!("byte {at}"));
    }
}

#[test]
fn a_file_cut_at_any_byte_is_malformed_and_says_where() {
    let file = original().as_bytes();
    for length in 0..file.len() {
        let message = malformed(file[..length].to_vec(), &format!("{length} bytes"));
        assert!(message.starts_with("byte "), "{length} bytes: {message}");
    }
}

#[test]
fn a_file_that_goes_on_is_malformed() {
    let file = original().as_bytes();
    for appended in [&[0][..], &[0x40], &[0xd2, 0x84], file] {
        let message = malformed([file, appended].concat(), "appended bytes");
        let expected = format!("byte {}: {} bytes after", file.len(), appended.len());
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn sections_of_another_transcript_are_malformed() {
    let other = Making { prompt: "Call us", trace: TraceMode::Layers, ..Making::default() };
    let other = other.make().seal();
    let split = |file: &[u8]| {
        let (item, sections) = file.split_at(section_start(file));
        (item.to_vec(), sections.to_vec())
    };
    let (item_a, sections_a) = split(original().as_bytes());
    let (item_b, sections_b) = split(other.as_bytes());
    assert_eq!(sections_a.len(), sections_b.len(), "the two differ in nothing but values");
    for (item, sections) in [(&item_a, &sections_b), (&item_b, &sections_a)] {
        let message = malformed([&item[..], sections].concat(), "spliced");
        assert!(message.contains("section logits does not match"), "{message}");
    }
}

#[test]
fn exchanged_sections_are_malformed() {
    let transcript = original();
    let file = transcript.as_bytes();
    let start = section_start(file);
    let trace = transcript.section("trace").unwrap().len();
    // A head of two bytes below 256, of three above.
    let trace_item = file.len() - trace - if trace < 256 { 2 } else { 3 };
    let exchanged = [&file[..start], &file[trace_item..], &file[start..trace_item]].concat();
    assert_eq!(exchanged.len(), file.len());
    assert!(malformed(exchanged, "exchanged").contains("section logits has"));
}

#[test]
fn a_statement_signed_by_another_key_is_untrusted() {
    let made = Making::default().make();
    let forged = Transcript::seal(&made.statement, &made.contents, &other_key()).unwrap();
    let done = refuse(forged.as_bytes().to_vec(), &support::trust());
    assert_eq!(done.report.verdict(), Verdict::Untrusted);
    let message = &failures(&done)[0].2;
    assert!(message.contains(&other_key().public().id().to_string()), "{message}");
}

#[test]
fn a_signature_under_a_borrowed_key_id_is_untrusted() {
    // The forger signs with a key of their own and names the trusted one.
    let made = Making::default().make();
    let forged = Transcript::seal(&made.statement, &made.contents, &other_key()).unwrap();
    let mut file = forged.as_bytes().to_vec();
    let own = other_key().public().id().0;
    let at = file.windows(8).position(|window| window == own).unwrap();
    file[at..at + 8].copy_from_slice(&support::key().public().id().0);
    let done = refuse(file, &support::trust());
    assert_eq!(done.report.verdict(), Verdict::Untrusted);
    assert!(failures(&done)[0].2.contains("the signature is not valid"), "{:?}", failures(&done));
}

#[test]
fn nobody_is_trusted_without_a_trust_store() {
    let done = refuse(original().as_bytes().to_vec(), &TrustStore::default());
    assert_eq!(done.report.verdict(), Verdict::Untrusted);
    let done = verify(Request {
        file: original().as_bytes().to_vec().into(),
        anchor: Anchor::Nothing,
        nonce: None,
        challenge: None,
        simd: Simd::detect(),
        open_model: &|_| panic!("a model is opened"),
        progress: &mut |_| {},
        diagnosing: None,
    });
    assert_eq!(done.report.verdict(), Verdict::Untrusted);
}
