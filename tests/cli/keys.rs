//! Private keys of every form, where a command signs: which are taken, which are
//! refused with which sentence, and where a passphrase comes from.

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use attest::transcript::key::PublicKey;

use crate::{Home, end, fails, text, tiny_model};

const PASSPHRASE: &str = "correct horse";

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/keys").join(name)
}

/// Copies a key file, which git keeps readable, and makes it private.
fn private(home: &Home, name: &str) -> PathBuf {
    let path = home.write(name, fs::read(fixture(name)).unwrap());
    mode(&path, 0o600);
    path
}

#[cfg(unix)]
fn mode(path: &PathBuf, bits: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
}

#[cfg(not(unix))]
fn mode(_: &PathBuf, _: u32) {}

/// `attest run` with this key, in a home with a prompt.
fn run(home: &Home, key: &str) -> Command {
    home.write("p.txt", "Call me");
    let model = tiny_model();
    let args = ["run", "--model", text(&model), "--prompt", "p.txt", "--engine", "emulator"];
    let mut command = home.attest(&args);
    command.args(["--max-new-tokens", "1", "--overwrite", "--json", "--key", key]);
    command
}

/// Requires that the run was signed by the key whose public half is this file.
fn signed_by(command: &mut Command, public: &str) {
    let ended = end(command);
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    let id = PublicKey::read(&fixture(public)).unwrap().id().to_string();
    assert_eq!(ended.json()["key_id"], id);
}

#[test]
fn every_private_form_signs() {
    let home = Home::empty();
    for (name, public, locked) in [
        ("pkcs8.pem", "spki.pem", false),
        ("openssh", "openssh.pub", false),
        ("locked_scrypt.pem", "spki.pem", true),
        ("openssh_locked", "openssh.pub", true),
    ] {
        private(&home, name);
        let mut command = run(&home, name);
        if locked {
            command.env("ATTEST_PASSPHRASE", PASSPHRASE);
        }
        signed_by(&mut command, public);
    }
}

#[test]
fn a_file_that_is_no_private_ed25519_key_is_a_usage_error() {
    let home = Home::empty();
    for (name, words) in [
        ("rsa", "rsa: the key is for RSA (ssh-rsa), only Ed25519 keys are used here"),
        ("ecdsa", "ecdsa: the key is for ECDSA (ecdsa-sha2-nistp256), only Ed25519"),
        ("spki.pem", "spki.pem: this is a public key (SPKI PEM), expected a private key"),
        ("openssh.pub", "openssh.pub: this is a public key (OpenSSH line), expected a private"),
        ("locked_pbes1.pem", "is encrypted with PKCS#12 (SHA-1, 3DES), which is not read here"),
    ] {
        private(&home, name);
        fails_as_json(&mut run(&home, name), &[words]);
        assert!(!home.path("transcript.cbor").exists());
    }
    let x25519 = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VuBCIEIEj8Egeo9ksl7cMU3hyZE8pJOsHvx7gNiwA3pT1MEZZm\n\
        -----END PRIVATE KEY-----\n";
    mode(&home.write("x25519.pem", x25519), 0o600);
    fails_as_json(&mut run(&home, "x25519.pem"), &["x25519.pem: the key is for X25519"]);
    let p256 = "-----BEGIN PRIVATE KEY-----\n\
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgk8AAYFbDZ7brYOO1\n\
        Vmul79bOin1b9sp6Y8l0JLOZIpyhRANCAATVu1hpUoJfLtWUjgNz6RxhavAx4ZVl\n\
        h2R2a3SURuZXuD+aA8T65hh/XK1fVLu6PJ4QpVOjbVe8BF8cLWDyhuc/\n\
        -----END PRIVATE KEY-----\n";
    mode(&home.write("p256.pem", p256), 0o600);
    fails_as_json(&mut run(&home, "p256.pem"), &["p256.pem: the key is for ECDSA"]);
}

/// Requires a usage error with these words, of a command with `--json`.
fn fails_as_json(command: &mut Command, words: &[&str]) {
    let ended = end(command);
    assert_eq!(ended.exit, 2, "{}{}", ended.stdout, ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is not in {:?}", ended.stderr);
    }
}

#[cfg(unix)]
#[test]
fn a_private_key_or_passphrase_that_others_may_read_is_refused_in_every_form() {
    let home = Home::empty();
    for name in ["pkcs8.pem", "openssh", "locked_scrypt.pem", "openssh_locked"] {
        mode(&private(&home, name), 0o644);
        fails_as_json(&mut run(&home, name), &["may be read by others (mode 644, expected 600)"]);
    }
    private(&home, "openssh_locked");
    mode(&home.write("pass", PASSPHRASE), 0o640);
    let mut command = run(&home, "openssh_locked");
    command.args(["--passphrase-file", "pass"]);
    fails_as_json(&mut command, &["passphrase file pass may be read by others (mode 640"]);
}

#[test]
fn a_passphrase_comes_from_a_file_before_the_environment_and_never_from_nowhere() {
    let home = Home::empty();
    private(&home, "openssh_locked");
    let with = |pass: &str, variable: Option<&str>| {
        mode(&home.write("pass", pass), 0o600);
        let mut command = run(&home, "openssh_locked");
        command.args(["--passphrase-file", "pass"]);
        command.envs(variable.map(|value| ("ATTEST_PASSPHRASE", value)));
        command
    };
    signed_by(&mut with("correct horse\n", None), "openssh.pub");
    signed_by(&mut with("correct horse\r\n", Some("wrong")), "openssh.pub");
    let cases = [
        ("correct house\n", "openssh_locked: the passphrase does not open the private key"),
        ("correct horse \n", "the passphrase does not open"),
        ("correct horse\n\n", "pass has several lines, a passphrase has one"),
        ("\n", "the passphrase is empty"),
        (&"x".repeat(1025), "pass is longer than 1024 bytes"),
    ];
    for (pass, words) in cases {
        fails_as_json(&mut with(pass, Some(PASSPHRASE)), &[words]);
    }
    for empty in [None, Some("")] {
        let mut command = run(&home, "openssh_locked");
        command.env_remove("ATTEST_PASSPHRASE");
        command.envs(empty.map(|value| ("ATTEST_PASSPHRASE", value)));
        fails_as_json(&mut command, &["a passphrase is needed, none was given", "no terminal"]);
    }
    // A key without one takes none: whoever believes that it has learns otherwise.
    private(&home, "openssh");
    let mut command = run(&home, "openssh");
    let ended = end(command.args(["--passphrase-file", "absent"]));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("openssh is under no passphrase; absent was not read"));
}

#[test]
fn keygen_encrypts_and_prints_the_entry_of_a_role() {
    let home = Home::empty();
    mode(&home.write("pass", "a b\n"), 0o600);
    let args = ["keygen", "--encrypt", "--passphrase-file", "pass", "--role", "auditor"];
    let ended = end(home.attest(&args).args(["--name", "office", "--json"]));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let json = ended.json();
    let path = home.config().join("auditor.pem");
    assert_eq!(json["private_key_file"], text(&path));
    assert_eq!((&json["encrypted"], &json["role"]), (&true.into(), &"auditor".into()));
    let entry = json["trust_entry"].as_str().unwrap();
    assert!(entry.contains("name = \"office\"") && entry.contains("role = \"auditor\""), "{entry}");
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----"), "{written}");

    // It signs with the passphrase, and with nothing else.
    let mut command = run(&home, text(&path));
    let ended = end(command.args(["--passphrase-file", "pass"]));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert_eq!(ended.json()["key_id"], json["key_id"]);
    fails_as_json(run(&home, text(&path)).env("ATTEST_PASSPHRASE", "a c"), &["does not open"]);

    fails(&mut home.attest(&args), 2, &["auditor.pem exists"]);
    let twice = ["keygen", "--out", "k.pem", "--passphrase-file", "pass"];
    fails(&mut home.attest(&twice), 2, &["for a key that is written with --encrypt"]);
    let none = ["keygen", "--out", "k.pem", "--encrypt"];
    fails(home.attest(&none).env_remove("ATTEST_PASSPHRASE"), 2, &["a passphrase is needed"]);
    assert!(!home.path("k.pem").exists());
    assert_eq!(end(&mut home.attest(&["keygen", "--role", "root"])).exit, 2);
}

#[test]
fn keygen_names_the_signer_by_the_role_unless_told() {
    let home = Home::empty();
    for (role, file) in
        [("prover", "key.pem"), ("auditor", "auditor.pem"), ("publisher", "publisher.pem")]
    {
        let json = end(&mut home.attest(&["keygen", "--role", role, "--json"])).json();
        assert!(json["private_key_file"].as_str().unwrap().ends_with(file), "{json}");
        let entry = json["trust_entry"].as_str().unwrap();
        assert!(entry.contains(&format!("name = \"{role}\"")), "{entry}");
        let path = home.write("t.toml", entry);
        let shown = end(&mut home.attest(&["trust", "show", "--json", "--trust", text(&path)]));
        assert_eq!(shown.json()["keys"][0]["role"], role);
    }
}

#[test]
fn the_auditor_signs_with_a_key_under_a_passphrase() {
    let home = Home::empty();
    let made = crate::support::Making::default().make();
    home.write("t.cbor", made.seal().as_bytes());
    home.write("trust.toml", crate::support::trust_text("\"*\""));
    let model = tiny_model();
    let args = ["verify", "t.cbor", "--model", text(&model), "--trust", "trust.toml", "--json"];
    let ended = end(&mut home.attest(&args));
    assert_eq!(ended.exit, 0, "{}", ended.stdout);
    home.write("r.json", ended.stdout);
    private(&home, "openssh_locked");
    let report = ["report", "t.cbor", "--report", "r.json", "--key", "openssh_locked"];
    let mut command = home.attest(&report);
    fails(command.env_remove("ATTEST_PASSPHRASE"), 2, &["a passphrase is needed"]);
    let keyless = ["report", "t.cbor", "--report", "r.json", "--passphrase-file", "p"];
    fails(&mut home.attest(&keyless), 2, &["--passphrase-file is for the key of --key"]);
    let ended = end(home.attest(&report).env("ATTEST_PASSPHRASE", PASSPHRASE));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);

    // The trust file takes the auditor's line as OpenSSH wrote it.
    let line = fs::read_to_string(fixture("openssh.pub")).unwrap();
    let entry = format!(
        "[[key]]\nname = \"a\"\npublic_key = \"{}\"\nrole = \"auditor\"\nmodels = \"*\"\n",
        line.trim_end()
    );
    home.write("a.toml", entry);
    let check = ["report", "--check", "r.json", "--trust", "a.toml"];
    let ended = end(&mut home.attest(&check));
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
}
