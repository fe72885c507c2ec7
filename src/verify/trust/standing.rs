//! What an entry is worth at a moment, for who reads a trust file.

use super::{TrustStore, TrustedKey};

/// What an entry is worth at a moment, apart from role and models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A claim of this moment is in the window.
    Valid,
    /// The window begins later.
    Early,
    /// The window is over.
    Late,
    /// The key is revoked, in this entry or in another one.
    Revoked,
}

impl Standing {
    /// A word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Early => "not yet valid",
            Self::Late => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl TrustStore {
    /// Says what an entry of this store is worth at a moment (Unix time).
    pub fn standing(&self, entry: &TrustedKey, now: u64) -> Standing {
        let same_key = |other: &&TrustedKey| other.key == entry.key;
        if self.keys.iter().filter(same_key).any(|other| other.revocation.is_some()) {
            Standing::Revoked
        } else if entry.valid_from.is_some_and(|from| now < from) {
            Standing::Early
        } else if entry.valid_until.is_some_and(|until| now >= until) {
            Standing::Late
        } else {
            Standing::Valid
        }
    }
}
