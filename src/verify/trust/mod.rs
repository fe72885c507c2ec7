//! Which keys may sign what, and when.
//!
//! The trust file is the verifier's own: nothing in a transcript adds to it. A
//! key id in a transcript only selects entries; the signature then has to be
//! valid under the key of the entry.

pub mod allowed_signers;
pub mod countersigned;
pub mod custody;
mod entry;
mod party;
mod policy;
mod refusal;
mod standing;
mod time;

pub use policy::Policy;
pub use refusal::{Distrust, TrustError};
pub use standing::Standing;
pub use time::{rfc3339, unix_time};

use serde::Deserialize;

use crate::num::Digest;
use crate::transcript::Transcript;
use crate::transcript::key::{KeyId, PublicKey};
use entry::Entry;

/// What a key may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Signs transcripts.
    Prover,
    /// Signs reports about transcripts.
    Auditor,
    /// Signs models.
    Publisher,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Prover, Self::Auditor, Self::Publisher];

    /// The role with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }

    /// The word in the trust file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Prover => "prover",
            Self::Auditor => "auditor",
            Self::Publisher => "publisher",
        }
    }
}

/// Which models an entry covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Models {
    /// Every model (`"*"`).
    Any,
    /// Models with one of these names or manifest digests.
    Listed(Vec<String>),
}

/// Since when, and why, a key is not trusted any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// Unix time (seconds).
    pub at: u64,
    /// The reason, in the words of the trust file.
    pub reason: String,
}

/// One `[[key]]` of the trust file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKey {
    /// Who holds the key.
    pub name: String,
    /// The key.
    pub key: PublicKey,
    /// What it may be used for.
    pub role: Role,
    /// Which models it may be used for.
    pub models: Models,
    /// First second of the window (Unix time).
    pub valid_from: Option<u64>,
    /// First second after the window (Unix time).
    pub valid_until: Option<u64>,
    /// Set if the key is revoked.
    pub revocation: Option<Revocation>,
}

/// The keys that the verifier trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustStore {
    keys: Vec<TrustedKey>,
    policy: Policy,
}

/// What a signer claims, as far as trust depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Name of the model.
    pub model_name: &'a str,
    /// Digest of the model's manifest.
    pub model_digest: Digest,
    /// Time of signing (Unix time). The signer's claim; nobody here can check it.
    pub time: u64,
    /// The role in which the key was used.
    pub role: Role,
}

impl TrustStore {
    /// Reads a trust file.
    ///
    /// # Errors
    /// [`TrustError`]: unknown fields, weak keys and empty windows are refused
    /// here, before any transcript is looked at.
    pub fn from_toml(text: &str) -> Result<Self, TrustError> {
        let file: TrustFile = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(0, |before| before.matches('\n').count()) + 1;
            TrustError::Form { line, reason: error.message().into() }
        })?;
        let keys = file.key.into_iter().map(TrustedKey::from_entry);
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let policy = Policy::from_entry(file.policy, &keys)?;
        Ok(Self { keys, policy })
    }

    /// All entries, in file order.
    pub fn keys(&self) -> &[TrustedKey] {
        &self.keys
    }

    /// What the verifier demands beyond a trusted signer.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Finds who signed a transcript and whether they may: signature first, then
    /// revocation, role, window and model.
    ///
    /// # Errors
    /// [`Distrust`], a sentence for the report.
    pub fn authenticate(&self, transcript: &Transcript) -> Result<&TrustedKey, Distrust> {
        let signed_by = |key: &PublicKey| transcript.verify_signature(key).is_ok();
        let signer = self.signer(transcript.key_id(), signed_by)?;
        let statement = transcript.statement();
        self.judge(
            &signer.key,
            &Claim {
                model_name: &statement.model.name,
                model_digest: statement.model.digest,
                time: statement.claimed_time,
                role: Role::Prover,
            },
        )
    }

    /// Finds the key with this id that a signature is by.
    ///
    /// # Errors
    /// [`Distrust::UnknownKey`], [`Distrust::BadSignature`].
    pub fn signer(
        &self,
        id: KeyId,
        signed_by: impl Fn(&PublicKey) -> bool,
    ) -> Result<&TrustedKey, Distrust> {
        let mut named = self.keys.iter().filter(|entry| entry.key.id() == id).peekable();
        let Some(first) = named.peek() else { return Err(Distrust::UnknownKey { id }) };
        let name = first.name.clone();
        named.find(|entry| signed_by(&entry.key)).ok_or(Distrust::BadSignature { id, name })
    }

    /// Says whether a key may make this claim. The signature is checked before.
    ///
    /// A key may have several entries; one that allows the claim is enough, one
    /// that is revoked spoils them all.
    ///
    /// # Errors
    /// [`Distrust`]; with several entries, the reason of the last one.
    pub fn judge(&self, key: &PublicKey, claim: &Claim) -> Result<&TrustedKey, Distrust> {
        self.allowing(key, |entry| entry.allows(claim))
    }

    /// The first entry of a key that allows something, if none is revoked.
    fn allowing(
        &self,
        key: &PublicKey,
        allows: impl Fn(&TrustedKey) -> Result<(), Distrust>,
    ) -> Result<&TrustedKey, Distrust> {
        let entries = || self.keys.iter().filter(|entry| entry.key == *key);
        for entry in entries() {
            if let Some(revocation) = &entry.revocation {
                return Err(Distrust::Revoked {
                    name: entry.name.clone(),
                    at: time::rfc3339(revocation.at),
                    reason: revocation.reason.clone(),
                });
            }
        }
        let mut reason = Distrust::UnknownKey { id: key.id() };
        for entry in entries() {
            match allows(entry) {
                Ok(()) => return Ok(entry),
                Err(refusal) => reason = refusal,
            }
        }
        Err(reason)
    }
}

impl TrustedKey {
    fn allows(&self, claim: &Claim) -> Result<(), Distrust> {
        self.has_role(claim.role)?;
        self.is_in_window(claim.time)?;
        let name = self.name.clone();
        let covered = match &self.models {
            Models::Any => true,
            Models::Listed(models) => {
                let digest = claim.model_digest.to_string();
                models.iter().any(|model| model == claim.model_name || *model == digest)
            }
        };
        if !covered {
            let (model, digest) = (claim.model_name.to_owned(), claim.model_digest);
            return Err(Distrust::OtherModel { name, model, digest });
        }
        Ok(())
    }

    fn has_role(&self, role: Role) -> Result<(), Distrust> {
        if self.role == role {
            return Ok(());
        }
        let (found, expected) = (self.role.word(), role.word());
        Err(Distrust::WrongRole { name: self.name.clone(), found, expected })
    }

    fn is_in_window(&self, claimed: u64) -> Result<(), Distrust> {
        let early = self.valid_from.filter(|&from| claimed < from);
        let late = self.valid_until.filter(|&until| claimed >= until);
        let crossed = early.map(|limit| ("before the window", limit));
        match crossed.or(late.map(|limit| ("after the window", limit))) {
            None => Ok(()),
            Some((side, limit)) => {
                let (claimed, limit) = (time::rfc3339(claimed), time::rfc3339(limit));
                Err(Distrust::OutOfWindow { name: self.name.clone(), claimed, side, limit })
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    #[serde(default)]
    key: Vec<Entry>,
    policy: Option<policy::Entry>,
}

#[cfg(test)]
mod tests;
