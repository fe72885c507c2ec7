//! Counter-signatures: which of them count, and whether they are enough.
//!
//! One counts if an auditor's key signed it, the key may be used for the transcript's
//! model at the time of signing, it is of this transcript, it says VERIFIED, and its
//! auditor is neither the prover nor counted already (`spec/custody.md`).

use super::{Claim, Distrust, Role, TrustStore, TrustedKey, party, time};
use crate::num::Digest;
use crate::transcript::countersignature::Countersignature;
use crate::transcript::key::KeyId;
use crate::transcript::signed::StatedVerdict;
use crate::transcript::{Transcript, TranscriptError};
use crate::verify::report::Verdict;

/// A file that may be a counter-signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// What to call it in reports.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Why a counter-signature is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Objection {
    /// The file is none.
    #[error("{0}")]
    Malformed(TranscriptError),
    /// It is of something else.
    #[error("it is of transcript {found}, not of {expected}")]
    OtherTranscript {
        /// Digest of the transcript at hand.
        expected: Digest,
        /// Digest in the counter-signature.
        found: Digest,
    },
    /// Whoever signed it may not.
    #[error("{0}")]
    Distrust(Distrust),
    /// The auditor signed the transcript, too.
    #[error("{name:?} is the prover of this transcript or shares a key or a name with it")]
    Prover {
        /// Name of the auditor.
        name: String,
    },
}

/// A valid counter-signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Valid<'a> {
    /// The entry that allows it.
    pub auditor: &'a TrustedKey,
    /// The key.
    pub key_id: KeyId,
    /// What the auditor states.
    pub stated: Countersignature,
    /// Whether an earlier file says VERIFIED for the same auditor.
    pub is_repeated: bool,
}

impl Valid<'_> {
    /// Whether it counts towards a policy.
    pub fn counts(&self) -> bool {
        self.stated.verdict == StatedVerdict::Verified && !self.is_repeated
    }
}

impl TrustStore {
    /// Judges each counter-signature, in order. The transcript's own signature is not
    /// looked at, but for whose it is.
    pub fn judge_countersignatures(
        &self,
        transcript: &Transcript,
        files: &[Given],
    ) -> Vec<Result<Valid<'_>, Objection>> {
        let parties = party::of_each(&self.keys);
        let party = |found: &TrustedKey| {
            let at = self.keys.iter().position(|entry| std::ptr::eq(entry, found));
            at.and_then(|at| parties.get(at)).copied()
        };
        let by_prover = |key: &_| transcript.verify_signature(key).is_ok();
        let prover = self.signer(transcript.key_id(), by_prover).ok().and_then(party);
        let mut counted = Vec::new();
        let judge = |file: &Given| {
            let mut valid = self.countersignature(transcript, &file.bytes)?;
            let party = party(valid.auditor);
            if party == prover {
                return Err(Objection::Prover { name: valid.auditor.name.clone() });
            }
            if valid.stated.verdict == StatedVerdict::Verified {
                valid.is_repeated = counted.contains(&party);
                counted.push(party);
            }
            Ok(valid)
        };
        files.iter().map(judge).collect()
    }

    /// A counter-signature by itself.
    fn countersignature(
        &self,
        transcript: &Transcript,
        file: &[u8],
    ) -> Result<Valid<'_>, Objection> {
        let signed = Countersignature::read(file).map_err(Objection::Malformed)?;
        let (envelope, stated) = (signed.envelope, signed.record);
        let expected = transcript.digest();
        if stated.transcript != expected {
            return Err(Objection::OtherTranscript { expected, found: stated.transcript });
        }
        let key_id = envelope.key_id;
        let key = self.signer(key_id, |key| envelope.is_signed_by(key));
        let key = key.map_err(Objection::Distrust)?.key;
        let model = &transcript.statement().model;
        let claim = Claim {
            model_name: &model.name,
            model_digest: model.digest,
            time: stated.time,
            role: Role::Auditor,
        };
        let auditor = self.judge(&key, &claim).map_err(Objection::Distrust)?;
        Ok(Valid { auditor, key_id, stated, is_repeated: false })
    }

    /// Whether the policy's auditors counter-signed a transcript: `Ok` with what to add
    /// to the signer's name in a report, `Err` likewise.
    pub(in crate::verify) fn check_policy(
        &self,
        transcript: &Transcript,
        files: &[Given],
    ) -> Result<String, String> {
        let demanded = self.policy.auditors;
        if demanded == 0 && files.is_empty() {
            return Ok(String::new());
        }
        let (mut counted, mut others) = (Vec::new(), Vec::new());
        for (file, judged) in files.iter().zip(self.judge_countersignatures(transcript, files)) {
            match judged {
                Ok(valid) if valid.counts() => {
                    let at = time::rfc3339(valid.stated.time);
                    counted.push(format!("{:?} at {at}", valid.auditor.name));
                }
                Ok(valid) if valid.is_repeated => {
                    others.push(format!("{}: {:?} again", file.name, valid.auditor.name));
                }
                Ok(valid) => {
                    let (name, verdict) = (&valid.auditor.name, valid.stated.verdict.word());
                    others.push(format!("{}: {name:?} says {verdict}", file.name));
                }
                Err(objection) => others.push(format!("{}: {objection}", file.name)),
            }
        }
        let count = counted.len();
        let mut said = match demanded {
            0 => format!("; counter-signatures: {count}"),
            _ => format!("; counter-signatures: {count} of {demanded} that the policy demands"),
        };
        if !counted.is_empty() {
            said += &format!(" ({})", counted.join(", "));
        }
        if !others.is_empty() {
            said += &format!("; not counted: {}", others.join("; "));
        }
        if count >= demanded { Ok(said) } else { Err(said) }
    }
}

impl From<Verdict> for StatedVerdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Verified => Self::Verified,
            Verdict::Mismatch => Self::Mismatch,
            Verdict::Untrusted => Self::Untrusted,
            Verdict::Malformed => Self::Malformed,
            Verdict::Incomplete => Self::Incomplete,
            Verdict::Partial => Self::Partial,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_signed_as_it_is_printed() {
        use Verdict::{Incomplete, Malformed, Mismatch, Partial, Untrusted, Verified};
        for verdict in [Verified, Mismatch, Untrusted, Malformed, Incomplete, Partial] {
            assert_eq!(StatedVerdict::from(verdict).word(), verdict.word());
        }
    }
}
