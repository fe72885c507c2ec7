//! `[policy]` of a trust file: how many auditors must have counter-signed.

use attest::transcript::countersignature::Countersignature;
use attest::transcript::signed::StatedVerdict;

use crate::countersign::{AUDITOR, SIGN, auditor, entry, stated};
use crate::support::{Making, trust_text};
use crate::{Home, end, fails, text, tiny_model};

#[test]
fn a_policy_demands_auditors_besides_the_prover() {
    let made = Making::default().make();
    let home = Home::empty();
    home.write("t.cbor", made.seal().as_bytes());
    let keys = [
        trust_text("\"*\""),
        entry("test", &auditor(7), AUDITOR),
        entry("a", &auditor(1), AUDITOR),
        entry("a", &auditor(2), AUDITOR),
        entry("b", &auditor(3), AUDITOR),
    ];
    let keys = keys.concat();
    let good = stated(&made);
    for seed in [1, 2, 3, 7] {
        home.write(&format!("{seed}.cbor"), good.seal(&auditor(seed)));
    }
    let no = Countersignature { verdict: StatedVerdict::Mismatch, ..good.clone() };
    home.write("no.cbor", no.seal(&auditor(3)));
    let model = tiny_model();
    let verify = |policy: &str, files: &[&str]| {
        home.write("mine.toml", format!("{policy}\n{keys}"));
        let mut command = home.attest(&["verify", "t.cbor", "--json", "--trust", "mine.toml"]);
        command.args(["--model", text(&model)]);
        for file in files {
            command.args(["--countersignature", file]);
        }
        let ended = end(&mut command);
        let json = ended.json();
        let trust = json["checks"][2].clone();
        assert_eq!(trust["subject"], "trust");
        let detail = trust["detail"].as_str().unwrap().to_owned();
        (ended.exit, json["verdict"].as_str().unwrap().to_owned(), detail)
    };
    let two = "[policy]\nauditors = 2";
    // (files, verdict, words of the check)
    let cases: [(&[&str], &str, &[&str]); 8] = [
        (
            &["1.cbor", "3.cbor"],
            "VERIFIED",
            &["2 of 2 that the policy demands (\"a\" at 2026-11-30T13:35:00Z, \"b\" at"],
        ),
        (
            &["3.cbor", "no.cbor", "1.cbor"],
            "VERIFIED",
            &["2 of 2", "not counted: no.cbor: \"b\" says MISMATCH"],
        ),
        (&[], "UNTRUSTED", &["counter-signatures: 0 of 2 that the policy demands"]),
        (&["1.cbor"], "UNTRUSTED", &["1 of 2"]),
        (&["1.cbor", "1.cbor"], "UNTRUSTED", &["1 of 2", "1.cbor: \"a\" again"]),
        (&["1.cbor", "2.cbor"], "UNTRUSTED", &["1 of 2", "2.cbor: \"a\" again"]),
        (&["1.cbor", "7.cbor"], "UNTRUSTED", &["1 of 2", "\"test\" is the prover"]),
        (&["1.cbor", "no.cbor"], "UNTRUSTED", &["1 of 2", "says MISMATCH"]),
    ];
    for (files, verdict, words) in cases {
        let (exit, found, detail) = verify(two, files);
        assert_eq!((exit, found.as_str()), (if verdict == "VERIFIED" { 0 } else { 3 }, verdict));
        for word in words {
            assert!(detail.contains(word), "{files:?}: {word:?} is not in {detail:?}");
        }
    }
    // Without a policy they are named, and change nothing.
    let (exit, _, detail) = verify("", &["1.cbor", "t.cbor"]);
    assert_eq!(exit, 0);
    assert!(
        detail.contains("\"test\" may sign as prover; counter-signatures: 1 (\"a\" at"),
        "{detail}"
    );
    assert!(detail.contains("not counted: t.cbor: byte"), "{detail}");
    assert_eq!(verify("", &[]).2, "\"test\" may sign as prover");
    // A report that counter-signatures are named in is a report.
    home.write("mine.toml", &keys);
    let args = ["verify", "t.cbor", "--json", "--trust", "mine.toml", "--model", text(&model)];
    let ended = end(home.attest(&args).args(["--countersignature", "1.cbor"]));
    home.write("r.json", ended.stdout);
    auditor(3).write_new(&home.path("auditor.pem")).unwrap();
    assert_eq!(end(&mut home.attest(&SIGN)).exit, 0);
}

#[test]
fn a_policy_that_nobody_can_meet_is_a_usage_error() {
    let home = Home::empty();
    home.write("t.cbor", Making::default().make().seal().as_bytes());
    let keys =
        trust_text("\"*\"") + &entry("a", &auditor(1), AUDITOR) + &entry("a", &auditor(2), AUDITOR);
    let cases = [
        ("[policy]\nauditors = 0", "auditors = 0 must be at least 1 and at most 1"),
        ("[policy]\nauditors = 2", "auditors = 2 must be at least 1 and at most 1"),
        ("[policy]\nauditors = -1", "trust file, line 2"),
        ("[policy]\nprovers = 1", "unknown field `provers`"),
        ("[policy]", "missing field `auditors`"),
    ];
    for (policy, words) in cases {
        home.write("mine.toml", format!("{policy}\n{keys}"));
        fails(&mut home.attest(&["verify", "t.cbor", "--trust", "mine.toml"]), 2, &[words]);
    }
}
