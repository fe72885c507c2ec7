//! Keys of OpenSSH: the public line and the private key file.

use super::{KeyError, Passphrase, PrivateKey};

/// Whether a word is the name of a key type, as a public line begins with.
pub(super) fn is_key_type(word: &str) -> bool {
    ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-", "rsa-sha2-"]
        .iter()
        .any(|start| word.starts_with(start))
}

/// Reads the bytes of a public key from one line: type, base64, comment.
pub(super) fn public_key(line: &str) -> Result<[u8; 32], KeyError> {
    let damaged = |reason: String| KeyError::Damaged { kind: LINE, reason };
    let word = line.split([' ', '\t']).next().unwrap_or_default();
    if word != ED25519 {
        return Err(other_algorithm(word));
    }
    if line.contains(['\n', '\r']) {
        return Err(damaged("there are several lines".into()));
    }
    // The parser takes one space; a tab does as well for OpenSSH.
    let line: Vec<&str> = line.split_ascii_whitespace().take(2).collect();
    let key = ssh_key::PublicKey::from_openssh(&line.join(" "))
        .map_err(|error| damaged(error.to_string()))?;
    match key.key_data().ed25519() {
        Some(key) => Ok(key.0),
        None => Err(other_algorithm(key.algorithm().as_str())),
    }
}

/// Reads a private key file, without opening it.
pub(super) fn private_file(text: &str) -> Result<ssh_key::PrivateKey, KeyError> {
    let key = ssh_key::PrivateKey::from_openssh(text)
        .map_err(|error| KeyError::Damaged { kind: FILE, reason: error.to_string() })?;
    if key.algorithm() != ssh_key::Algorithm::Ed25519 {
        return Err(other_algorithm(key.algorithm().as_str()));
    }
    Ok(key)
}

/// The key of a file that is under no passphrase.
pub(super) fn private_key(file: &ssh_key::PrivateKey) -> Result<PrivateKey, KeyError> {
    let other = || KeyError::Damaged { kind: FILE, reason: "it holds another key".into() };
    let pair = file.key_data().ed25519().ok_or_else(other)?;
    PrivateKey::from_pair(pair.private.as_ref(), Some(&pair.public.0), FILE)
}

/// Decrypts a file that is under a passphrase.
pub(super) fn open(file: &ssh_key::PrivateKey, with: &Passphrase) -> Result<PrivateKey, KeyError> {
    let opened = file.decrypt(with.as_bytes()).map_err(|error| {
        if error == ssh_key::Error::Crypto {
            return KeyError::WrongPassphrase { kind: FILE };
        }
        KeyError::Damaged { kind: FILE, reason: error.to_string() }
    })?;
    private_key(&opened)
}

/// Refuses a key type by its name.
fn other_algorithm(word: &str) -> KeyError {
    let name = match word {
        word if word.contains("-cert-v01@") => "a certificate",
        word if word.starts_with("sk-") => "a security key",
        word if word.starts_with("ecdsa-sha2-") => "ECDSA",
        "ssh-rsa" | "rsa-sha2-256" | "rsa-sha2-512" => "RSA",
        "ssh-dss" => "DSA",
        _ => "another algorithm",
    };
    KeyError::OtherAlgorithm { found: format!("{name} ({word})") }
}

/// What errors call a private key file.
pub(super) const FILE: &str = "private key (OpenSSH)";
const LINE: &str = "public key (OpenSSH line)";
const ED25519: &str = "ssh-ed25519";
