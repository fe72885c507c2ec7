//! Why a trust file is refused, and why a signer is not trusted.

use crate::num::Digest;
use crate::transcript::key::{KeyError, KeyId};

/// Why a trust file is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// Not TOML, or not of the form of a trust file.
    #[error("trust file, line {line}: {reason}")]
    Form {
        /// The line, from 1 on.
        line: usize,
        /// The parser's reason.
        reason: String,
    },
    /// A key that cannot be trusted by anybody.
    #[error("trust file: key {name:?}: {source}")]
    Key {
        /// Name of the entry.
        name: String,
        /// Why.
        source: KeyError,
    },
    /// A field that makes no sense.
    #[error("trust file: key {name:?}: {field}: {reason}")]
    Field {
        /// Name of the entry.
        name: String,
        /// The field.
        field: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A policy that the file's keys can never meet, or that demands nothing.
    #[error(
        "trust file: policy: auditors = {demanded} must be at least 1 and at most {listed}, as many \
         as the file lists (one key or one name is one auditor)"
    )]
    Policy {
        /// How many the policy demands.
        demanded: usize,
        /// How many there are.
        listed: usize,
    },
}

/// Why a signer is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Distrust {
    /// No entry has this id.
    #[error("key {id} is not in the trust store")]
    UnknownKey {
        /// The id.
        id: KeyId,
    },
    /// Entries have this id, but the signature is not theirs.
    #[error("the signature is not valid under key {id} of {name:?}")]
    BadSignature {
        /// The id.
        id: KeyId,
        /// Name of the first entry with it.
        name: String,
    },
    /// The key is revoked, whatever time the transcript claims: whoever stole a
    /// key can claim an early time.
    #[error("the key of {name:?} was revoked at {at}: {reason}")]
    Revoked {
        /// Name of the entry.
        name: String,
        /// When.
        at: String,
        /// Why.
        reason: String,
    },
    /// The key is for something else.
    #[error("the key of {name:?} is trusted as {found}, not as {expected}")]
    WrongRole {
        /// Name of the entry.
        name: String,
        /// Role of the entry.
        found: &'static str,
        /// Role that is needed.
        expected: &'static str,
    },
    /// The claimed time is outside the window.
    #[error("the claimed time {claimed} is {side} of the key of {name:?}, {limit}")]
    OutOfWindow {
        /// Name of the entry.
        name: String,
        /// The claimed time.
        claimed: String,
        /// Which side was crossed.
        side: &'static str,
        /// The crossed limit.
        limit: String,
    },
    /// The key is for other models.
    #[error("the key of {name:?} is not trusted for model {model:?} with manifest {digest}")]
    OtherModel {
        /// Name of the entry.
        name: String,
        /// Claimed name of the model.
        model: String,
        /// Its manifest digest.
        digest: Digest,
    },
}
