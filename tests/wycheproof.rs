//! Ed25519 verification against the vectors of Project Wycheproof.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

use std::collections::BTreeMap;

use attest::transcript::key::PublicKey;
use wycheproof::TestResult;
use wycheproof::eddsa::{TestName, TestSet};

/// How often something was seen, by result and by what the vector is about.
type Counts = BTreeMap<(&'static str, String), usize>;

#[test]
fn every_vector_verifies_or_is_refused_as_it_says() {
    let set = TestSet::load(TestName::Ed25519).unwrap();
    let mut counts = Counts::new();
    let mut other_lengths = 0;
    for group in &set.test_groups {
        // All keys of these vectors are sound; a key that is not would never load.
        let key = PublicKey::from_bytes(group.key.pk.as_ref().try_into().unwrap()).unwrap();
        for test in &group.tests {
            // A signature of another length than 64 bytes does not reach the key.
            let verifies = match <&[u8; 64]>::try_from(test.sig.as_ref()) {
                Ok(signature) => key.verifies(&test.msg, signature),
                Err(_) => {
                    other_lengths += 1;
                    false
                }
            };
            let (expected, word) = match test.result {
                TestResult::Valid => (true, "valid"),
                TestResult::Invalid => (false, "invalid"),
                TestResult::Acceptable => panic!("test {}: Ed25519 has one answer", test.tc_id),
            };
            assert_eq!(verifies, expected, "test {}: {}", test.tc_id, test.comment);
            *counts.entry((word, format!("{:?}", test.flags))).or_default() += 1;
        }
    }
    for ((result, about), count) in &counts {
        println!("{count:4} {result:7} {about}");
    }
    let total: usize = counts.values().sum();
    println!("{total:4} in {} keys, {other_lengths} of another length", set.test_groups.len());
    assert_eq!(total, set.number_of_tests);
    // A set that lost its valid or its invalid half would show little.
    let of = |wanted| -> usize {
        counts.iter().filter(|((word, _), _)| *word == wanted).map(|(_, count)| count).sum()
    };
    assert_eq!((of("valid"), of("invalid"), other_lengths), (88, 63, 12));
}
