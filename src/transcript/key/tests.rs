//! Keys that must be accepted, and the ones that must not.

use super::*;

/// RFC 8032 section 7.1, test 2: secret key, public key, message, signature.
const SECRET: &str = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
const PUBLIC: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
const MESSAGE: [u8; 1] = [0x72];
const SIGNATURE: &str = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

/// RFC 8410 section 10.1 and 10.3: a public key and private keys of both versions.
const RFC8410_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
";
const RFC8410_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
";

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    hex::decode(text).unwrap().try_into().unwrap()
}

fn open(text: &str) -> Result<PrivateKey, KeyError> {
    Stored::from_text(text)?.without_passphrase()
}

fn private() -> PrivateKey {
    PrivateKey::from_seed(&bytes(SECRET))
}

#[test]
fn signs_as_rfc_8032_does() {
    assert_eq!(private().public().to_hex(), PUBLIC);
    assert_eq!(hex::encode(private().sign(&MESSAGE)), SIGNATURE);
    assert!(private().public().verifies(&MESSAGE, &bytes(SIGNATURE)));
    assert!(!private().public().verifies(&[0x73], &bytes(SIGNATURE)));
}

#[test]
fn reads_and_writes_the_pem_of_rfc_8410() {
    let private = open(RFC8410_PRIVATE).unwrap();
    assert_eq!(*private.to_pem(), RFC8410_PRIVATE);
    assert_eq!(private.public().to_pem(), RFC8410_PUBLIC);
    assert_eq!(PublicKey::from_text(RFC8410_PUBLIC).unwrap(), private.public());
    assert_eq!(PublicKey::from_text(&private.public().to_hex()).unwrap(), private.public());
}

#[test]
fn a_second_spelling_of_a_signature_is_refused() {
    // S + L in place of S: the same scalar to a lenient verifier.
    let order: [u8; 32] = bytes("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let mut signature: [u8; 64] = bytes(SIGNATURE);
    let mut carry = 0u16;
    for (digit, addend) in signature[32..].iter_mut().zip(order) {
        let sum = u16::from(*digit) + u16::from(addend) + carry;
        (*digit, carry) = (sum as u8, sum >> 8);
    }
    assert!(!private().public().verifies(&MESSAGE, &signature));
}

#[test]
fn refuses_weak_and_second_spellings_of_public_keys() {
    let cases = [
        ("0100000000000000000000000000000000000000000000000000000000000000", "weak", "identity"),
        ("0000000000000000000000000000000000000000000000000000000000000000", "weak", "order 4"),
        ("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "weak", "order 2"),
        (
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "weak",
            "identity with y = p + 1",
        ),
        (
            "0200000000000000000000000000000000000000000000000000000000000000",
            "not a point",
            "y = 2 is off the curve",
        ),
        // y = p + 3 is the second spelling of y = 3, a point of large order.
        (
            "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "canonical",
            "y = p + 3",
        ),
    ];
    for (key, expected, reason) in cases {
        let refusal = PublicKey::from_text(key).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{reason}: {refusal}");
    }
    let plain = "0300000000000000000000000000000000000000000000000000000000000000";
    PublicKey::from_text(plain).unwrap();
}

#[test]
fn says_what_a_wrong_key_file_is() {
    let public = RFC8410_PUBLIC;
    let private = RFC8410_PRIVATE;
    let rsa = "-----BEGIN RSA PRIVATE KEY-----\nMA==\n-----END RSA PRIVATE KEY-----";
    let cut = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTu\n-----END PRIVATE KEY-----";
    let cases = [
        (public, "this is a public key"),
        (rsa, "this is an RSA private key"),
        (P256_PRIVATE, "the key is for ECDSA"),
        (RSA_PRIVATE, "the key is for RSA"),
        (X25519_PRIVATE, "the key is for X25519"),
        (cut, "is damaged"),
        ("", "not a key"),
        (PUBLIC, "this is a public key (64 hex digits)"),
    ];
    for (text, expected) in cases {
        let refusal = open(text).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{refusal}");
    }
    let cases = [
        (private, "this is a private key"),
        (P256_PUBLIC, "the key is for ECDSA"),
        (RSA_PUBLIC, "the key is for RSA"),
        (X25519_PUBLIC, "the key is for X25519"),
        ("-----BEGIN CERTIFICATE-----", "this is a certificate"),
        ("-----BEGIN EC PARAMETERS-----", "this is an elliptic-curve (ECDSA) private key"),
        ("PuTTY-User-Key-File-3: ssh-ed25519", "this is a PuTTY key file"),
        (&PUBLIC[2..], "not a key"),
    ];
    for (text, expected) in cases {
        let refusal = PublicKey::from_text(text).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn a_private_key_is_not_printed() {
    let printed = format!("{:?}", private());
    assert_eq!(printed, format!("PrivateKey of {}", private().public().id()));
}

#[cfg(unix)]
#[test]
fn key_files_are_private_and_never_overwritten() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.pem");
    private().write_new(&path).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(PrivateKey::read(&path).unwrap().public(), private().public());
    assert!(matches!(private().write_new(&path), Err(KeyError::Io { .. })));

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let refusal = PrivateKey::read(&path).unwrap_err().to_string();
    assert!(refusal.ends_with("may be read by others (mode 640, expected 600)"), "{refusal}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&path, vec![b'x'; 64 * 1024 + 1]).unwrap();
    let refusal = PrivateKey::read(&path).unwrap_err().to_string();
    assert!(refusal.ends_with("key.pem is longer than 65536 bytes, which no key is"), "{refusal}");
    std::fs::write(&path, [0x30, 0x2e, 0xff]).unwrap();
    let refusal = PublicKey::read(&path).unwrap_err();
    assert!(matches!(refusal, KeyError::Unrecognised), "DER is not text: {refusal}");
    let missing = PrivateKey::read(&folder.path().join("none")).unwrap_err();
    assert!(matches!(missing, KeyError::Io { .. }));
}

// Made with OpenSSL for this test; their private halves protect nothing.
const P256_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgk8AAYFbDZ7brYOO1
Vmul79bOin1b9sp6Y8l0JLOZIpyhRANCAATVu1hpUoJfLtWUjgNz6RxhavAx4ZVl
h2R2a3SURuZXuD+aA8T65hh/XK1fVLu6PJ4QpVOjbVe8BF8cLWDyhuc/
-----END PRIVATE KEY-----
";
const P256_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE1btYaVKCXy7VlI4Dc+kcYWrwMeGV
ZYdkdmt0lEbmV7g/mgPE+uYYf1ytX1S7ujyeEKVTo21XvARfHC1g8obnPw==
-----END PUBLIC KEY-----
";
// The header of an RSA key without the key.
const RSA_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MBYCAQAwDQYJKoZIhvcNAQEBBQAEAjAA
-----END PRIVATE KEY-----
";
const RSA_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkg1j3hYW/91pV+rzrpwcLBa0H
wCRhR8WSRRRjG4qf/hi8FAKXlAqoYM+d5HHM9UXfNV9kqMfd0NhBpKZK0OtvT58S
Vu6BPakRlqkzJC5WThlWGYKzk+FawSmVQcX7PvhQviiF4UkkdsDJv67SybnNz9n1
OD8OqHYcrOIgoppXGwIDAQAB
-----END PUBLIC KEY-----
";
const X25519_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VuBCIEIEj8Egeo9ksl7cMU3hyZE8pJOsHvx7gNiwA3pT1MEZZm
-----END PRIVATE KEY-----
";
const X25519_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VuAyEAa3Y7EHUodMLNoj7URSHA2l2G8HPHtXmSX9OvugLBBmI=
-----END PUBLIC KEY-----
";
