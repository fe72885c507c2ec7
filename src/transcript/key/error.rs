//! Why a key is refused.

use std::path::PathBuf;

/// Why a key is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// None of the forms that are read.
    #[error("not a key: neither PEM, OpenSSH, JWK nor 64 hex digits")]
    Unrecognised,
    /// A key file of another tool, or the other half of a pair.
    #[error("{found}, expected {expected}")]
    OtherFormat {
        /// What was found.
        found: &'static str,
        /// What was asked for.
        expected: &'static str,
    },
    /// A key for another algorithm.
    #[error("the key is for {found}, only Ed25519 keys are used here")]
    OtherAlgorithm {
        /// The algorithm, or its identifier.
        found: String,
    },
    /// A key of the right form that cannot be read.
    #[error("the {kind} is damaged: {reason}")]
    Damaged {
        /// Which kind of key.
        kind: &'static str,
        /// The parser's reason.
        reason: String,
    },
    /// A private key beside a public key that is not its own.
    #[error("the {kind} holds a public key that is not its own")]
    OtherHalf {
        /// Which kind of key.
        kind: &'static str,
    },
    /// 32 bytes that are no point of the curve.
    #[error("public key {key} is not a point of the curve")]
    NotAPoint {
        /// The key in hex.
        key: String,
    },
    /// Not the canonical encoding of its point.
    #[error("public key {key} is not in its canonical encoding")]
    NotCanonical {
        /// The key in hex.
        key: String,
    },
    /// A point of small order: one signature would fit many messages.
    #[error("public key {key} is weak: it has small order")]
    Weak {
        /// The key in hex.
        key: String,
    },
    /// A passphrase is needed and there is none.
    #[error("the {kind} is under a passphrase, and none was given")]
    Locked {
        /// Which kind of key.
        kind: &'static str,
    },
    /// A passphrase that opens nothing.
    #[error("the passphrase does not open the {kind}")]
    WrongPassphrase {
        /// Which kind of key.
        kind: &'static str,
    },
    /// A passphrase of no bytes protects nothing.
    #[error("the passphrase is empty")]
    NoPassphrase,
    /// Encrypted in a way that is not read here.
    #[error("the {kind} is encrypted with {found}, which is not read here")]
    Cipher {
        /// Which kind of key.
        kind: &'static str,
        /// The scheme, or its object identifier.
        found: String,
    },
    /// A private key that others may read.
    #[error("{path} may be read by others (mode {mode:03o}, expected 600)")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Too long for a key.
    #[error("{path} is longer than {limit} bytes, which no key is")]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Most bytes that are read.
        limit: u64,
    },
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl KeyError {
    /// Whether the sentence names the file already.
    pub fn names_file(&self) -> bool {
        match self {
            Self::Exposed { .. } | Self::TooLong { .. } | Self::Io { .. } => true,
            Self::Unrecognised
            | Self::OtherFormat { .. }
            | Self::OtherAlgorithm { .. }
            | Self::Damaged { .. }
            | Self::OtherHalf { .. }
            | Self::NotAPoint { .. }
            | Self::NotCanonical { .. }
            | Self::Weak { .. }
            | Self::Locked { .. }
            | Self::WrongPassphrase { .. }
            | Self::NoPassphrase
            | Self::Cipher { .. } => false,
        }
    }
}
