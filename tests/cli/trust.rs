//! Trust files: what they refuse, whom they keep out and when, how they are shown, and
//! how they are made from OpenSSH's list.

use std::fs;

use attest::transcript::Transcript;
use attest::verify::trust::TrustStore;

use crate::support::{Making, key, trust_text};
use crate::{Home, end, fails, text, tiny_model};

/// RFC 8032 section 7.1, test 1.
const LINE: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea";
const HEX: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

fn entry(public_key: &str, rest: &str) -> String {
    format!(
        "[[key]]\nname = \"k\"\npublic_key = '''{public_key}'''\nrole = \"prover\"\n\
         models = \"*\"\n{rest}\n"
    )
}

#[test]
fn a_trust_file_with_a_key_that_cannot_be_trusted_is_a_usage_error() {
    let home = Home::empty();
    home.write("t.cbor", Making::default().make().seal().as_bytes());
    let read = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keys/");
        fs::read_to_string(format!("{folder}{name}")).unwrap()
    };
    let identity = format!("01{}", "00".repeat(31));
    let x25519 = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VuAyEAa3Y7EHUodMLNoj7URSHA2l2G8HPHtXmSX9OvugLBBmI=\n\
        -----END PUBLIC KEY-----\n";
    let p256 = "-----BEGIN PUBLIC KEY-----\n\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE1btYaVKCXy7VlI4Dc+kcYWrwMeGV\n\
        ZYdkdmt0lEbmV7g/mgPE+uYYf1ytX1S7ujyeEKVTo21XvARfHC1g8obnPw==\n\
        -----END PUBLIC KEY-----\n";
    let cases = [
        (identity, "is weak: it has small order", "one signature would fit many messages"),
        (x25519.into(), "the key is for X25519", "cannot sign"),
        (p256.into(), "the key is for ECDSA", "another curve"),
        (read("rsa.pub"), "the key is for RSA (ssh-rsa)", "another algorithm"),
        (read("pkcs8.pem"), "this is a private key (PKCS#8 PEM), expected a public", "private"),
        (read("openssh"), "this is an OpenSSH private key, expected a public key", "private"),
    ];
    for (public_key, words, reason) in cases {
        home.write("t.toml", entry(&public_key, ""));
        for command in [
            ["verify", "t.cbor", "--trust", "t.toml"].as_slice(),
            &["trust", "show", "--trust", "t.toml"],
        ] {
            let words = ["t.toml: trust file: key \"k\": ", words];
            let ended = fails(&mut home.attest(command), 2, &words);
            assert!(!ended.stderr.contains("b3Blb"), "{reason}: a secret is not printed");
        }
    }
}

#[test]
fn the_signature_that_fits_every_message_under_a_weak_key_is_untrusted() {
    // The identity as R and zero as S: to a lenient verifier, and under the identity as
    // key, a signature over anything.
    let home = Home::empty();
    let sealed = Making::default().make().seal();
    let mut forged = sealed.as_bytes().to_vec();
    let at = signature(&sealed);
    forged[at..at + 64].fill(0);
    forged[at] = 1;
    home.write("t.cbor", forged);
    home.write("t.toml", trust_text("\"*\""));
    let model = tiny_model();
    let args = ["verify", "t.cbor", "--trust", "t.toml", "--model", text(&model)];
    let ended = end(&mut home.attest(&args));
    assert_eq!(ended.exit, 3, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("the signature is not valid under key"), "{}", ended.stdout);
}

/// Where the signature is: the 64 bytes of which one changed leaves the statement as it
/// was, and nobody's.
fn signature(sealed: &Transcript) -> usize {
    let file = sealed.as_bytes();
    let is_signature = |&at: &usize| {
        if file[at - 2..at] != [0x58, 0x40] {
            return false;
        }
        let mut changed = file.to_vec();
        changed[at] ^= 1;
        Transcript::parse(changed).is_ok_and(|read| {
            read.verify_signature(&key().public()).is_err()
                && read.statement() == sealed.statement()
        })
    };
    (2..file.len() - 64).find(is_signature).unwrap()
}

#[test]
fn the_claimed_time_decides_within_the_window_and_a_revocation_always() {
    let home = Home::empty();
    let model = tiny_model();
    let public = key().public().to_hex();
    let window = "valid_from = 2026-11-30\nvalid_until = 2026-12-01";
    let late = 4_070_908_800; // 2099-01-01T00:00:00Z
    let early = 1_795_996_799; // 2026-11-29T23:59:59Z
    let within = crate::support::TIME;
    let gone = format!("{window}\nrevoked_at = 2030-01-01\nreason = \"laptop stolen\"");
    // (entry, claimed time, exit code, words)
    let cases = [
        (window, within, 0, "may sign as prover"),
        (
            window,
            late,
            3,
            "the claimed time 2099-01-01T00:00:00Z is after the window of the key of \"k\", \
             2026-12-01T00:00:00Z",
        ),
        (
            window,
            early,
            3,
            "the claimed time 2026-11-29T23:59:59Z is before the window of the key of \"k\", \
             2026-11-30T00:00:00Z",
        ),
        ("valid_from = 2026-11-30", late, 0, "claimed_time 2099-01-01T00:00:00Z"),
        (&gone, within, 3, "was revoked at 2030-01-01T00:00:00Z: laptop stolen"),
    ];
    for (rest, time, exit, words) in cases {
        let mut made = Making::default().make();
        made.statement.claimed_time = time;
        home.write("t.cbor", made.seal().as_bytes());
        home.write("t.toml", entry(&public, rest));
        let args = ["verify", "t.cbor", "--trust", "t.toml", "--model", text(&model)];
        let ended = end(&mut home.attest(&args));
        assert_eq!(ended.exit, exit, "{words}: {}", ended.stdout);
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
}

#[test]
fn show_says_who_may_sign_what_and_whether_now() {
    let home = Home::empty();
    let auditor = "[[key]]\nname = \"office\\u001b[2J\"\npublic_key = \"\
        3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c\"\nrole = \"auditor\"\n\
        models = [\"a\", \"b\"]\nvalid_until = 2020-01-01\n";
    let later = entry(LINE, "valid_from = 2999-01-01\nvalid_until = 3000-01-01");
    let path = home.write("t.toml", trust_text("\"*\"") + auditor + &later);
    let args = ["trust", "show", "--trust", text(&path)];
    let ended = end(&mut home.attest(&args));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    for words in [
        "3 entries",
        "\"test\"",
        "as prover: transcripts, of every model",
        "from 2026-11-30T00:00:00Z, before 2026-12-01T00:00:00Z",
        "as auditor: reports on transcripts and counter-signatures, of a, b",
        "from any time, before 2020-01-01T00:00:00Z",
        "expired, at ",
        "not yet valid, at ",
        "by this clock",
        HEX,
    ] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    assert!(!ended.stdout.contains('\u{1b}'), "a name cannot move the cursor");
    let json = end(home.attest(&args).arg("--json")).json();
    assert_eq!(json["keys"].as_array().unwrap().len(), 3);
    assert_eq!(json["keys"][1]["models"], serde_json::json!(["a", "b"]));
    assert_eq!(json["keys"][1]["now"], "expired");
    assert_eq!(json["keys"][2]["valid_from"], "2999-01-01T00:00:00Z");
    assert_eq!(json["keys"][2]["now"], "not yet valid");

    let revoked = entry(HEX, "revoked_at = 2026-01-01\nreason = \"lost\"");
    home.write("t.toml", later + &revoked);
    let ended = end(&mut home.attest(&args));
    assert!(ended.stdout.contains("revoked, in another entry of this key"), "{}", ended.stdout);
    assert!(ended.stdout.contains("2026-01-01T00:00:00Z: lost"), "{}", ended.stdout);

    fails(&mut home.attest(&["trust", "show"]), 2, &["there is no trust file at", "--trust"]);
    fails(&mut home.attest(&["trust", "show", "--trust", "absent"]), 2, &["absent"]);
}

#[test]
fn a_list_of_allowed_signers_becomes_entries() {
    let home = Home::empty();
    let list = format!(
        "# signers\nada@example.org namespaces=\"attest\",valid-after=\"20260101Z\",\
         valid-before=\"20270101Z\" {LINE} Ada\nbob@example.org ssh-rsa AAAA\n\
         eve@example.org namespaces=\"git\" {LINE}\n"
    );
    home.write("allowed_signers", list);
    let import = ["trust", "import", "allowed_signers", "allowed_signers"];
    let ended = end(&mut home.attest(&import));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let expected = format!(
        "[[key]]\nname = \"ada@example.org\"\npublic_key = \"{HEX}\"\nrole = \"prover\"\n\
         models = \"*\"\nvalid_from = 2026-01-01T00:00:00Z\nvalid_until = 2027-01-01T00:00:01Z\n"
    );
    assert_eq!(ended.stdout, expected);
    for note in [
        "note: allowed_signers, line 3: \"bob@example.org\" is skipped: the key is for RSA",
        "note: allowed_signers, line 4: \"eve@example.org\" is skipped: the key is for namespaces",
    ] {
        assert!(ended.stderr.contains(note), "{note}: {}", ended.stderr);
    }
    let strict = [&import[..], &["--strict"]].concat();
    fails(&mut home.attest(&strict), 2, &["allowed_signers: line 3: ", "RSA"]);

    let out = ["--role", "auditor", "--models", "a,b", "--namespace", "git", "--out", "t.toml"];
    let args = [&import[..], &out].concat();
    let ended = end(home.attest(&args).arg("--json"));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let json = ended.json();
    assert_eq!((&json["entries"], &json["skipped"][0]["line"]), (&1.into(), &2.into()));
    let written = fs::read_to_string(home.path("t.toml")).unwrap();
    assert_eq!(json["trust_entries"], written);
    let store = TrustStore::from_toml(&written).unwrap();
    assert_eq!(
        (&*store.keys()[0].name, store.keys()[0].role.word()),
        ("eve@example.org", "auditor")
    );
    fails(&mut home.attest(&args), 2, &["t.toml exists"]);
    let over = [&import[..], &["--out", "allowed_signers", "--overwrite"]].concat();
    fails(&mut home.attest(&over), 2, &["is read by this run"]);
}

#[test]
fn a_list_that_is_not_understood_gives_no_entry() {
    let home = Home::empty();
    let import = ["trust", "import", "allowed_signers", "list"];
    let cases = [
        (format!("*@example.org cert-authority {LINE}"), "line 1: cert-authority: certificates"),
        (format!("a no-such-option {LINE}"), "line 1: unknown option \"no-such-option\""),
        ("a ssh-rsa AAAA".to_owned(), "no key in it is for namespace \"attest\""),
        (String::new(), "no key in it"),
    ];
    for (list, words) in cases {
        home.write("list", list);
        fails(&mut home.attest(&import), 2, &[words]);
    }
    home.write("list", [0xff]);
    fails(&mut home.attest(&import), 2, &["list: not text"]);
    home.write("list", format!("a valid-after=\"20260101\" {LINE}"));
    let ended = end(&mut home.attest(&import));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("line 1: a time without Z is taken as UTC"), "{}", ended.stderr);
    fails(home.attest(&import).arg("--strict"), 2, &["a time without Z"]);
    fails(home.attest(&import).args(["--models", "a,*"]), 2, &["\"*\" stands alone"]);
}
