//! Lists of allowed signers, line by line.

use super::*;
use crate::transcript::key::PrivateKey;

/// RFC 8032 section 7.1, test 1, as a line of OpenSSH.
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea";
const RSA: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ==";

fn one(text: &str) -> Line {
    let mut lines = read(text, "attest").unwrap();
    assert_eq!(lines.len(), 1, "{text}");
    lines.remove(0)
}

fn signer(text: &str) -> Signer {
    match one(text) {
        Line::Signer(signer) => *signer,
        Line::Skipped { reason, .. } => panic!("{text}: {reason}"),
    }
}

#[test]
fn reads_principals_and_key() {
    let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    let seed: [u8; 32] = hex::decode(seed).unwrap().try_into().unwrap();
    let key = PrivateKey::from_seed(&seed).public();
    // (line, principals, reason)
    let cases = [
        (format!("a@b.c {KEY}"), "a@b.c", "the least"),
        (format!("a@b.c {KEY} a comment, with spaces"), "a@b.c", "a comment"),
        (format!("  a@b.c\t{KEY}  "), "a@b.c", "blanks and a tab"),
        (format!("a@b.c {KEY}\r"), "a@b.c", "a line of Windows"),
        (format!("a@b.c {}", KEY.replace(' ', "\t")), "a@b.c", "a tab in the key"),
        (format!("*@b.c,!d@b.c {KEY}"), "*@b.c,!d@b.c", "patterns"),
        (format!("\"Ada B\" {KEY}"), "Ada B", "quoted"),
        (format!("a@b.c namespaces=\"attest\" {KEY}"), "a@b.c", "an option"),
        (format!("a@b.c NameSpaces=\"x y,attest\" {KEY}"), "a@b.c", "a space in quotes"),
    ];
    for (line, principals, reason) in cases {
        let read = signer(&format!("# first\n\n{line}\n"));
        assert_eq!((read.line, &*read.principals), (3, principals), "{reason}");
        assert_eq!(read.key, key, "{reason}");
        assert_eq!((read.valid_from, read.valid_until, read.local_time), (None, None, false));
    }
}

#[test]
fn reads_windows_to_the_second() {
    // Expected values from GNU date, `date -u -d … +%s`.
    let cases = [
        ("valid-after=\"20261130\"", (Some(1_795_996_800), None, true), "a day"),
        ("valid-after=\"20261130Z\"", (Some(1_795_996_800), None, false), "a day in UTC"),
        ("valid-after=\"202611301335Z\"", (Some(1_796_045_700), None, false), "minutes"),
        ("valid-after=\"20261130133501Z\"", (Some(1_796_045_701), None, false), "seconds"),
        ("valid-before=\"20261130z\"", (None, Some(1_795_996_801), false), "the last second is in"),
        (
            "valid-after=\"20261130Z\",valid-before=\"202611301335\",namespaces=\"attest\"",
            (Some(1_795_996_800), Some(1_796_045_701), true),
            "all at once",
        ),
        ("valid-before=\"99991231235959Z\"", (None, Some(LAST), false), "the last TOML has"),
    ];
    for (options, expected, reason) in cases {
        let read = signer(&format!("a {options} {KEY}"));
        assert_eq!((read.valid_from, read.valid_until, read.local_time), expected, "{reason}");
    }
}

const LAST: u64 = 253_402_300_799;

#[test]
fn skips_other_keys_and_namespaces_with_a_reason() {
    let cases = [
        (format!("a {RSA}"), "the key is for RSA (ssh-rsa), only Ed25519"),
        ("a ecdsa-sha2-nistp256 AAAA".to_owned(), "ECDSA (ecdsa-sha2-nistp256)"),
        ("a sk-ssh-ed25519@openssh.com AAAA".to_owned(), "a security key"),
        ("a ssh-ed25519-cert-v01@openssh.com AAAA".to_owned(), "a certificate"),
        (format!("a namespaces=\"git,file\" {KEY}"), "for namespaces \"git,file\", not for"),
    ];
    for (line, expected) in cases {
        match one(&line) {
            Line::Skipped { line: 1, principals, reason } => {
                assert_eq!(principals, "a");
                assert!(reason.contains(expected), "{reason}");
            }
            other @ (Line::Skipped { .. } | Line::Signer(_)) => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn refuses_what_it_does_not_understand() {
    let weak = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let cases = [
        ("a".to_owned(), "no key after the principals"),
        (KEY.to_owned(), "unknown option"),
        (format!("\"a {KEY}"), "a quote has no end"),
        (format!("\"\" {KEY}"), "no key after the principals"),
        (format!("a cert-authority {KEY}"), "cert-authority: certificates are not used here"),
        (format!("a Cert-Authority,namespaces=\"attest\" {KEY}"), "cert-authority:"),
        (format!("a no-pty {KEY}"), "unknown option \"no-pty\""),
        (format!("a namespaces=\"attest\", {KEY}"), "unknown option \"\""),
        (format!("a namespaces=\"attest\"x {KEY}"), "unknown option \"x\""),
        (format!("a namespaces=attest {KEY}"), "namespaces needs a value in double quotes"),
        (format!("a namespaces {KEY}"), "namespaces needs a value"),
        (format!("a namespaces=\"attest {KEY}"), "a quote has no end"),
        (format!("a namespaces=\"a\",namespaces=\"b\" {KEY}"), "namespaces is given twice"),
        (format!("a valid-after=\"2026\" {KEY}"), "valid-after \"2026\": not YYYYMMDD"),
        (format!("a valid-after=\"2026113é\" {KEY}"), "not YYYYMMDD"),
        (format!("a valid-after=\"20260230Z\" {KEY}"), "valid-after \"20260230Z\""),
        (format!("a valid-after=\"202611302460Z\" {KEY}"), "valid-after"),
        (format!("a valid-before=\"19691231Z\" {KEY}"), "before 1970"),
        (
            format!("a valid-after=\"20270101\",valid-before=\"20260101\" {KEY}"),
            "valid-before is not after valid-after",
        ),
        ("a namespaces=\"attest\"".to_owned(), "no key after the principals"),
        ("a ssh-ed25519 AAAA".to_owned(), "is damaged"),
        (format!("a {weak}"), "is weak"),
    ];
    for (line, expected) in cases {
        let refusal = read(&format!("\n{line}"), "attest").unwrap_err();
        assert_eq!(refusal.line, 2);
        assert!(refusal.to_string().contains(expected), "{expected}: {refusal}");
    }
}
