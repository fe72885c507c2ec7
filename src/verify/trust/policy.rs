//! `[policy]` of a trust file: what the verifier demands beyond a trusted signer.

use serde::Deserialize;

use super::{Role, TrustError, TrustedKey, party};

/// What the verifier demands beyond a trusted signer; the default demands nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// How many auditors must have counter-signed the transcript as VERIFIED, the signer
    /// not among them.
    pub auditors: usize,
}

impl Policy {
    /// A policy that somebody can meet: at least one auditor is demanded, and no more
    /// than the file lists.
    pub(super) fn from_entry(
        entry: Option<Entry>,
        keys: &[TrustedKey],
    ) -> Result<Self, TrustError> {
        let Some(Entry { auditors }) = entry else { return Ok(Self::default()) };
        let demanded = usize::try_from(auditors).unwrap_or(usize::MAX);
        let parties = party::of_each(keys);
        let mut listed: Vec<usize> = keys
            .iter()
            .zip(&parties)
            .filter(|(key, _)| key.role == Role::Auditor)
            .map(|(_, party)| *party)
            .collect();
        listed.sort_unstable();
        listed.dedup();
        match listed.len() {
            count if (1..=count).contains(&demanded) => Ok(Self { auditors: demanded }),
            listed => Err(TrustError::Policy { demanded, listed }),
        }
    }
}

/// `[policy]` as the parser leaves it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    auditors: u64,
}
