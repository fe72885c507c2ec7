//! The forms of other tools: what they hold, and what of them is refused.

use base64ct::{Base64UrlUnpadded, Encoding as _};

use super::*;

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../../tests/data/keys/", $name))
    };
}

const PASSPHRASE: &str = "correct horse";
const OPENSSH_LINE: &str = file!("openssh.pub");
const SPKI: &str = file!("spki.pem");

/// RFC 8037 appendix A.1 and A.2.
const JWK_PRIVATE: &str = r#"{"kty":"OKP","crv":"Ed25519",
    "d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
    "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
const JWK_PUBLIC: &str =
    r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

fn passphrase(text: &str) -> Passphrase {
    Passphrase::new(text.as_bytes().to_vec()).unwrap()
}

fn opened(text: &str, with: &str) -> Result<PrivateKey, KeyError> {
    match Stored::from_text(text)? {
        Stored::Open(key) => Ok(key),
        Stored::Locked(locked) => locked.open(&passphrase(with)),
    }
}

#[test]
fn every_form_of_a_pair_gives_the_same_public_key() {
    let cases = [
        (file!("pkcs8.pem"), SPKI, false, "PKCS#8"),
        (file!("locked_pbkdf2.pem"), SPKI, true, "PBKDF2 over SHA-256"),
        (file!("locked_scrypt.pem"), SPKI, true, "scrypt"),
        (file!("openssh"), OPENSSH_LINE, false, "OpenSSH"),
        (file!("openssh_locked"), OPENSSH_LINE, true, "OpenSSH, bcrypt"),
        (JWK_PRIVATE, JWK_PUBLIC, false, "JWK"),
    ];
    for (private, public, locked, form) in cases {
        let key = opened(private, PASSPHRASE).unwrap();
        assert_eq!(key.public(), PublicKey::from_text(public).unwrap(), "{form}");
        let stored = Stored::from_text(private).unwrap();
        assert_eq!(matches!(stored, Stored::Locked(_)), locked, "{form}");
        if locked {
            let refusal = opened(private, "correct house").unwrap_err();
            assert!(matches!(refusal, KeyError::WrongPassphrase { .. }), "{form}: {refusal}");
            let refusal = stored.without_passphrase().unwrap_err();
            assert!(matches!(refusal, KeyError::Locked { .. }), "{form}: {refusal}");
        }
    }
}

#[test]
fn no_wrong_passphrase_opens_anything_whatever_padding_it_leaves() {
    // One in 256 leaves a padding that looks right.
    for wrong in 0..1000 {
        let refusal = opened(file!("locked_pbkdf2.pem"), &format!("wrong {wrong}")).unwrap_err();
        assert!(matches!(refusal, KeyError::WrongPassphrase { .. }), "{wrong}: {refusal}");
    }
}

#[test]
fn a_key_is_locked_and_opened() {
    let key = PrivateKey::from_seed(&[7; 32]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.pem");
    key.write_new_encrypted(&path, &passphrase(PASSPHRASE), &[1; 16], [2; 16]).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"), "{text}");
    let Stored::Locked(locked) = Stored::read(&path).unwrap() else { panic!("{text}") };
    assert_eq!(locked.open(&passphrase(PASSPHRASE)).unwrap().public(), key.public());
    assert!(matches!(PrivateKey::read(&path), Err(KeyError::Locked { .. })));
    assert!(matches!(Passphrase::new(vec![]), Err(KeyError::NoPassphrase)));
    assert_eq!(format!("{:?}{:?}", locked, passphrase("secret")).find("secret"), None);
}

#[test]
fn a_private_key_of_another_kind_is_refused_by_name() {
    let cases = [
        (file!("rsa"), "the key is for RSA (ssh-rsa)", "OpenSSH"),
        (file!("ecdsa"), "the key is for ECDSA (ecdsa-sha2-nistp256)", "OpenSSH"),
        (file!("locked_x25519.pem"), "the key is for X25519", "known once it is open"),
        (file!("locked_pbes1.pem"), "encrypted with PKCS#12 (SHA-1, 3DES)", "PBES1"),
        (file!("locked_3des.pem"), "encrypted with 3DES", "PBES2 with an old cipher"),
        (file!("locked_sha1.pem"), "encrypted with PBKDF2 over SHA-1", "an old hash"),
        (SPKI, "this is a public key (SPKI PEM), expected a private key", "the other half"),
        (OPENSSH_LINE, "this is a public key (OpenSSH line), expected", "the other half"),
        (JWK_PUBLIC, "this is a public key (JWK), expected a private key", "the other half"),
    ];
    for (text, expected, reason) in cases {
        let refusal = opened(text, PASSPHRASE).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{reason}: {refusal}");
    }
}

#[test]
fn a_private_key_beside_another_public_key_is_refused() {
    let other = PrivateKey::from_seed(&[7; 32]).public().to_bytes();
    let x = Base64UrlUnpadded::encode_string(&other);
    let jwk = JWK_PRIVATE.replace("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", &x);
    let refusal = opened(&jwk, "").unwrap_err();
    assert!(matches!(refusal, KeyError::OtherHalf { .. }), "{refusal}");
}

#[test]
fn a_public_key_of_another_kind_is_refused_by_name() {
    let weak = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let renamed = file!("rsa.pub").replacen("ssh-rsa", "ssh-ed25519", 1);
    let cut = &OPENSSH_LINE[..60];
    let two = OPENSSH_LINE.repeat(2);
    let cases = [
        (file!("rsa.pub"), "the key is for RSA (ssh-rsa), only Ed25519", "by its first word"),
        (file!("ecdsa.pub"), "ECDSA (ecdsa-sha2-nistp256)", "by its first word"),
        ("ssh-dss AAAA", "DSA (ssh-dss)", "by its first word"),
        ("sk-ssh-ed25519@openssh.com AAAA", "a security key (sk-ssh-", "signs something else"),
        ("ssh-ed25519-cert-v01@openssh.com AAAA", "a certificate (", "is not a key"),
        (&renamed, "is damaged", "a line that says ed25519 and holds RSA"),
        (cut, "is damaged", "cut off"),
        (&two, "several lines", "two keys"),
        (weak, "is weak", "the identity, as OpenSSH writes it"),
        (file!("openssh"), "this is an OpenSSH private key, expected a public key", "private"),
        (file!("pkcs8.pem"), "this is a private key (PKCS#8 PEM)", "private"),
        (file!("locked_scrypt.pem"), "this is a private key under a passphrase", "private"),
        (JWK_PRIVATE, "this is a private key (JWK), expected a public key", "private"),
    ];
    for (text, expected, reason) in cases {
        let refusal = PublicKey::from_text(text).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{reason}: {refusal}");
    }
}

#[test]
fn a_jwk_is_taken_whole_or_not_at_all() {
    let with = |member: &str| JWK_PUBLIC.replacen('{', &format!("{{{member},"), 1);
    for member in [
        r#""alg":"EdDSA""#,
        r#""alg":"Ed25519""#,
        r#""use":"sig","kid":"a""#,
        r#""key_ops":["verify"],"ext":true"#,
    ] {
        PublicKey::from_text(&with(member)).unwrap_or_else(|error| panic!("{member}: {error}"));
    }
    let padded = JWK_PUBLIC.replace("URo\"", "URo=\"");
    let spelled = JWK_PUBLIC.replace("URo\"", "URp\"");
    let short = JWK_PUBLIC.replace("11qY", "");
    let weak = JWK_PUBLIC.replace(
        "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    );
    let cases = [
        (with(r#""alg":"ES256""#), "the key is for \"ES256\"", "another algorithm"),
        (with(r#""use":"enc""#), "its use is \"enc\", not \"sig\"", "for encryption"),
        (with(r#""key_ops":["sign"]"#), "do not have \"verify\"", "may not verify"),
        (with(r#""nbf":1"#), "unknown field `nbf`", "a restriction nobody reads"),
        (with(r#""x":"AA""#), "duplicate field `x`", "two keys in one"),
        (padded, "x is not 32 bytes in base64url", "padding"),
        (spelled, "x is not 32 bytes in base64url", "loose bits"),
        (short, "x is not 32 bytes in base64url", "29 bytes"),
        (weak, "is weak", "the identity"),
        (JWK_PUBLIC.replace("\"Ed25519\"", "\"X25519\""), "the key is for \"X25519\"", "curve"),
        (r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#.into(), "the key is for RSA", "type"),
        (r#"{"kty":"EC","crv":"P-256"}"#.into(), "the key is for ECDSA (\"P-256\")", "type"),
        (r#"{"kty":"oct","k":"AA"}"#.into(), "a symmetric algorithm", "type"),
        (r#"{"kty":"AKP"}"#.into(), "the key is for \"AKP\"", "type"),
        (r#"{"keys":[]}"#.into(), "this is a set of keys (JWKS)", "a set"),
        ("{}".into(), "it has no kty", "nothing"),
        ("{".into(), "the key (JWK) is damaged", "no JSON"),
        (format!("{JWK_PUBLIC} x"), "trailing characters", "more after it"),
    ];
    for (text, expected, reason) in cases {
        let refusal = PublicKey::from_text(&text).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{reason}: {refusal}");
    }
}
