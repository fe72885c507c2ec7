//! Trust files, and who is trusted for what.

use super::*;
use crate::transcript::key::PrivateKey;

const FROM: u64 = 1_767_225_600; // 2026-01-01
const UNTIL: u64 = 1_798_761_600; // 2027-01-01

fn key(seed: u8) -> PublicKey {
    PrivateKey::from_seed(&[seed; 32]).public()
}

fn entry(seed: u8, rest: &str) -> String {
    format!("[[key]]\nname = \"lab {seed}\"\npublic_key = \"{}\"\n{rest}\n", key(seed).to_hex())
}

fn claim(time: u64) -> Claim<'static> {
    Claim { model_name: "tiny", model_digest: Digest([0xab; 32]), time, role: Role::Prover }
}

#[test]
fn trusts_within_window_role_and_model_only() {
    let digest = "ab".repeat(32);
    let window = "valid_from = 2026-01-01\nvalid_until = 2027-01-01";
    // (fields of the entry, claimed time, expected refusal, reason)
    let prover = |models: &str| format!("role = \"prover\"\nmodels = {models}\n{window}");
    let cases = [
        (prover("\"*\""), FROM, "", "first second"),
        (prover("\"*\""), UNTIL - 1, "", "last second"),
        (prover("[\"other\", \"tiny\"]"), FROM, "", "by name"),
        (prover(&format!("[\"{digest}\"]")), FROM, "", "by manifest digest"),
        (
            prover("\"*\""),
            FROM - 1,
            "before the window of the key of \"lab 1\"",
            "one second early",
        ),
        (prover("\"*\""), UNTIL, "2027-01-01T00:00:00Z is after the window", "one second late"),
        (prover("[\"tin\"]"), FROM, "not trusted for model \"tiny\"", "another name"),
        (
            "role = \"auditor\"\nmodels = \"*\"".to_owned(),
            FROM,
            "trusted as auditor, not as prover",
            "another role",
        ),
        (
            prover("\"*\"") + "\nrevoked_at = 2026-06-01T00:00:00Z\nreason = \"laptop stolen\"",
            FROM,
            "was revoked at 2026-06-01T00:00:00Z: laptop stolen",
            "revoked, though the claimed time is earlier",
        ),
    ];
    for (fields, time, expected, reason) in cases {
        let store = TrustStore::from_toml(&entry(1, &fields)).unwrap();
        match store.judge(&key(1), &claim(time)) {
            Ok(found) => assert!(expected.is_empty() && found.name == "lab 1", "{reason}"),
            Err(refusal) => {
                let refusal = refusal.to_string();
                assert!(!expected.is_empty() && refusal.contains(expected), "{reason}: {refusal}");
            }
        }
    }
}

#[test]
fn an_empty_store_trusts_nobody() {
    let store = TrustStore::from_toml("").unwrap();
    let refusal = store.judge(&key(1), &claim(FROM)).unwrap_err();
    assert_eq!(refusal, Distrust::UnknownKey { id: key(1).id() });
}

#[test]
fn one_entry_that_allows_is_enough_and_one_revoked_spoils_all() {
    let other = entry(1, "role = \"prover\"\nmodels = [\"other\"]");
    let tiny = entry(1, "role = \"prover\"\nmodels = [\"tiny\"]");
    let revoked =
        entry(1, "role = \"auditor\"\nmodels = \"*\"\nrevoked_at = 2026-01-01\nreason = \"lost\"");
    let store = TrustStore::from_toml(&(other.clone() + &tiny)).unwrap();
    assert!(store.judge(&key(1), &claim(FROM)).is_ok());
    let store = TrustStore::from_toml(&(other + &tiny + &revoked)).unwrap();
    let refusal = store.judge(&key(1), &claim(FROM)).unwrap_err();
    assert!(matches!(refusal, Distrust::Revoked { .. }));
}

#[test]
fn reads_keys_in_every_public_form() {
    // RFC 8032 section 7.1, test 1, is the key of RFC 8037 appendix A.
    let hex = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let expected = PublicKey::from_text(hex).unwrap();
    let pem = expected.to_pem();
    let ssh =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea a b";
    let jwk = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    for form in [hex, &pem, ssh, jwk] {
        let store = TrustStore::from_toml(&entry_of(form)).unwrap();
        assert_eq!(store.keys()[0].key, expected, "{form}");
    }
}

/// An entry with a key text of several lines.
fn entry_of(text: &str) -> String {
    format!("[[key]]\nname = \"k\"\npublic_key = '''\n{text}'''\nrole = \"prover\"\nmodels = \"*\"")
}

#[test]
fn an_entry_that_is_written_is_the_entry_that_is_read() {
    let full = TrustedKey {
        name: "a \"b\"\n[[key]]\n# \\ \u{7f} \u{202e}".into(),
        key: key(1),
        role: Role::Auditor,
        models: Models::Listed(vec!["x".into(), "\"]\nrole = \"prover\"".into()]),
        valid_from: Some(FROM),
        valid_until: Some(253_402_300_799),
        revocation: Some(Revocation { at: 0, reason: "''' it's \"\"\" gone".into() }),
    };
    let plain = TrustedKey {
        role: Role::Publisher,
        models: Models::Any,
        valid_from: None,
        valid_until: None,
        revocation: None,
        ..full.clone()
    };
    for entry in [full, plain] {
        let text = entry.to_toml();
        assert_eq!(TrustStore::from_toml(&text).unwrap().keys(), [entry], "{text}");
    }
    assert!(Role::ALL.iter().all(|role| Role::from_word(role.word()) == Some(*role)));
}

#[test]
fn an_entry_stands_as_its_window_and_every_revocation_of_its_key_say() {
    let prover = "role = \"prover\"\nmodels = \"*\"";
    let window = format!("{prover}\nvalid_from = 2026-01-01\nvalid_until = 2027-01-01");
    let store = TrustStore::from_toml(&entry(1, &window)).unwrap();
    let cases = [
        (FROM - 1, Standing::Early),
        (FROM, Standing::Valid),
        (UNTIL - 1, Standing::Valid),
        (UNTIL, Standing::Late),
    ];
    for (now, expected) in cases {
        assert_eq!(store.standing(&store.keys()[0], now), expected, "{now}");
    }
    // Revoked from a later day on: not trusted at any time (K3).
    let revoked = format!("{prover}\nrevoked_at = 2030-01-01\nreason = \"lost\"");
    let store = TrustStore::from_toml(&(entry(1, &window) + &entry(1, &revoked))).unwrap();
    for listed in store.keys() {
        assert_eq!(store.standing(listed, FROM), Standing::Revoked);
    }
}

#[test]
fn refuses_files_it_does_not_fully_understand() {
    let good = "role = \"prover\"\nmodels = \"*\"";
    let weak = format!("[[key]]\nname = \"w\"\npublic_key = \"01{}\"\n{good}", "00".repeat(31));
    let private = entry_of(&PrivateKey::from_seed(&[1; 32]).to_pem());
    let rsa = entry_of("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ==");
    let cases = [
        (private, "key \"k\": this is a private key (PKCS#8 PEM), expected a public key"),
        (rsa, "key \"k\": the key is for RSA (ssh-rsa), only Ed25519"),
        (weak, "key \"w\": public key 01"),
        (entry(1, &format!("{good}\ntreshold = 2")), "unknown field `treshold`"),
        ("threshold = 2\n".to_owned(), "unknown field `threshold`"),
        (entry(1, "models = \"*\""), "missing field `role`"),
        (entry(1, "role = \"prover\""), "missing field `models`"),
        (entry(1, "role = \"root\"\nmodels = \"*\""), "unknown variant `root`"),
        (entry(1, "role = \"prover\"\nmodels = []"), "models: lists no model"),
        (entry(1, "role = \"prover\"\nmodels = \"tiny\""), "models: must be \"*\" or a list"),
        (entry(1, "role = \"prover\"\nmodels = [\"*\"]"), "stands alone"),
        (entry(1, &format!("{good}\nvalid_from = 2026-01-01T10:00:00")), "needs its offset"),
        (
            entry(1, &format!("{good}\nvalid_from = 2027-01-01\nvalid_until = 2026-01-01")),
            "not after",
        ),
        (entry(1, &format!("{good}\nrevoked_at = 2026-01-01")), "reason: missing"),
        (entry(1, &format!("{good}\nreason = \"x\"")), "revoked_at: missing"),
        (entry(1, &format!("{good}\nvalid_from = 2026-02-30")), "trust file"),
        ("[[key]".to_owned(), "trust file"),
    ];
    for (text, expected) in cases {
        let refusal = TrustStore::from_toml(&text).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{expected}: {refusal}");
    }
}
