//! Private keys under a passphrase in PKCS#8 (PBES2, RFC 8018).
//!
//! Written with scrypt and AES-256-CBC; read with whatever PBES2 names, as long
//! as it is scrypt or PBKDF2 over SHA-2, and AES.

use ed25519_dalek::pkcs8::{EncodePrivateKey, KeypairBytes};
use pkcs8::der::asn1::{AnyRef, ObjectIdentifier};
use pkcs8::der::pem::{LineEnding, PemLabel};
use pkcs8::der::{self, Decode as _, Reader as _, SliceReader};
use pkcs8::pkcs5::{self, pbes2};
use pkcs8::spki::AlgorithmIdentifierRef;
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef, SecretDocument};
use zeroize::Zeroizing;

use super::{KeyError, Passphrase, PrivateKey, pem};

/// Reads the frame, so that a file that no passphrase opens is refused before one
/// is asked for.
pub(super) fn frame(text: &str) -> Result<SecretDocument, KeyError> {
    let document = pem::document(text, KIND)?;
    // The schemes before PBES2 are many, and the parser knows few of them.
    let scheme = scheme(document.as_bytes()).map_err(refused)?;
    if scheme != pbes2::PBES2_OID {
        return Err(cipher(scheme));
    }
    EncryptedPrivateKeyInfoRef::from_der(document.as_bytes()).map_err(refused)?;
    Ok(document)
}

/// Decrypts what [`frame`] read.
pub(super) fn open(document: &SecretDocument, with: &Passphrase) -> Result<PrivateKey, KeyError> {
    let info = EncryptedPrivateKeyInfoRef::from_der(document.as_bytes()).map_err(refused)?;
    let opened = info.decrypt(with.as_bytes()).map_err(|error| {
        if let pkcs8::Error::EncryptedPrivateKey(pkcs5::Error::UnsupportedAlgorithm { oid }) = error
        {
            return cipher(oid);
        }
        // With a wrong key the padding is wrong, or what it leaves is no DER.
        KeyError::WrongPassphrase { kind: KIND }
    })?;
    match pem::private_key_info(opened.as_bytes(), KIND) {
        // One wrong key in 256 leaves a padding that looks right.
        Err(KeyError::Damaged { .. }) => Err(KeyError::WrongPassphrase { kind: KIND }),
        other => other,
    }
}

/// Encrypts a private key. `salt` and `iv` are random bytes, drawn for this key.
pub(super) fn seal(
    pair: &KeypairBytes,
    with: &Passphrase,
    salt: &[u8; 16],
    iv: [u8; 16],
) -> Zeroizing<String> {
    let cost = scrypt::Params::new(LOG_N, R, P).expect("the cost is one that scrypt has");
    let parameters = pbes2::Parameters::generate_scrypt_aes256cbc(cost, salt, iv)
        .expect("a salt of 16 bytes fits");
    let plain = pair.to_pkcs8_der().expect("a valid key has a DER form");
    let info = PrivateKeyInfoRef::from_der(plain.as_bytes()).expect("it was written just now");
    let sealed = info.encrypt_with_params(parameters, with.as_bytes());
    let sealed = sealed.expect("scrypt and AES take every passphrase");
    let text = sealed.to_pem(EncryptedPrivateKeyInfoRef::PEM_LABEL, LineEnding::LF);
    text.expect("a document has a PEM form")
}

/// The object identifier of the encryption, whatever its parameters are.
fn scheme(der: &[u8]) -> Result<ObjectIdentifier, der::Error> {
    SliceReader::new(der)?.sequence(|fields| {
        let algorithm = AlgorithmIdentifierRef::decode(fields)?;
        AnyRef::decode(fields)?;
        Ok(algorithm.oid)
    })
}

fn refused(error: der::Error) -> KeyError {
    if let der::ErrorKind::OidUnknown { oid } = error.kind() {
        return cipher(oid);
    }
    KeyError::Damaged { kind: KIND, reason: error.to_string() }
}

fn cipher(oid: ObjectIdentifier) -> KeyError {
    let oid = oid.to_string();
    let name = SCHEMES.iter().find(|(known, _)| *known == oid).map(|(_, name)| *name);
    KeyError::Cipher { kind: KIND, found: name.map_or(oid, str::to_owned) }
}

/// What errors call such a file.
pub(super) const KIND: &str = "private key (encrypted PKCS#8 PEM)";

// The cost of scrypt: 16 MiB of memory, five times over (OWASP Password Storage Cheat
// Sheet). OpenSSL 3 refuses more than 32 MiB, and has to be able to read these files.
const LOG_N: u8 = 14;
const R: u32 = 8;
const P: u32 = 5;

// RFC 8018 appendix C, RFC 7292 appendix C.
const SCHEMES: [(&str, &str); 7] = [
    ("1.2.840.113549.1.5.3", "PBES1 (MD5, DES)"),
    ("1.2.840.113549.1.5.10", "PBES1 (SHA-1, DES)"),
    ("1.2.840.113549.1.12.1.3", "PKCS#12 (SHA-1, 3DES)"),
    ("1.2.840.113549.1.12.1.6", "PKCS#12 (SHA-1, RC2)"),
    ("1.2.840.113549.2.7", "PBKDF2 over SHA-1"),
    ("1.3.14.3.2.7", "DES"),
    ("1.2.840.113549.3.7", "3DES"),
];
