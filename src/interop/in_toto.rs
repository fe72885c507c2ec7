//! The in-toto Statement that an export carries: whose subject is a transcript.
//!
//! Every value is copied from the transcript's statement. The predicate is closed: a
//! member that is not listed here is refused, which in-toto leaves to the predicate's
//! specification (`spec/interop.md`).
//!
//! # Source
//! in-toto attestation framework v1.1, `spec/v1/statement.md`.

use serde::{Deserialize, Serialize};

use super::InteropError;
use super::hex_text::{Hex256, HexBytes, present};
use crate::model::json;
use crate::num::sha256;
use crate::transcript::Transcript;
use crate::transcript::statement::{Artifact as StatedArtifact, FORMAT_VERSION};
use crate::verify::trust::{rfc3339, unix_time};

/// Type of the statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// Type of the predicate. The name is not registered and leads nowhere: what it means is
/// in `spec/interop.md`. A change of meaning gets another number.
pub const PREDICATE_TYPE: &str = "urn:attest:transcript-export:v1";

/// Name of the subject that is the transcript.
pub const TRANSCRIPT_SUBJECT: &str = "transcript";

/// Name of the subject that is the list of generated token ids.
pub const TOKENS_SUBJECT: &str = "tokens_out.u32le";

/// An in-toto Statement on one transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// [`STATEMENT_TYPE`].
    #[serde(rename = "_type")]
    pub statement_type: String,
    /// The transcript, then its generated token ids if there are any.
    pub subject: Vec<Subject>,
    /// [`PREDICATE_TYPE`].
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    /// What the transcript states.
    pub predicate: Predicate,
}

/// One subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// [`TRANSCRIPT_SUBJECT`] or [`TOKENS_SUBJECT`].
    pub name: String,
    /// Its digest.
    pub digest: DigestSet,
}

/// A digest with its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DigestSet {
    /// SHA-256.
    pub sha256: Hex256,
}

/// Claims of the transcript, and who copied them when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Predicate {
    /// False: neither the transcript's signature nor its computation was checked.
    pub transcript_checked: bool,
    /// Who copied the claims.
    pub exporter: Exporter,
    /// Version of the transcript's format.
    pub format_version: u64,
    /// Version of the numerics (plan version).
    pub numerics: u64,
    /// The program that wrote the transcript.
    pub producer: Tool,
    /// Id of the key that the transcript names.
    pub transcript_key_id: HexBytes,
    /// The model.
    pub model: Model,
    /// The GPU profile.
    pub profile: Artifact,
    /// The dispatch catalogue.
    pub catalogue: Artifact,
    /// The software stack.
    pub stack: String,
    /// What executed the plan: `cuda` or `emulator`.
    pub engine: String,
    /// How many tokens went in and came out.
    pub tokens: Tokens,
    /// Why generation ended.
    pub finish: String,
    /// Time that the transcript's signer claims (RFC 3339, UTC).
    pub claimed_time: String,
    /// The challenger's nonce; `null` if there was none.
    #[serde(deserialize_with = "present")]
    pub nonce: Option<HexBytes>,
    /// Commitment to the logits.
    pub logits: Commitment,
    /// Commitment to the outputs of steps.
    pub trace: Commitment,
}

/// The program that exported, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exporter {
    /// Name of the program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Time that the exporter claims (RFC 3339, UTC).
    pub time: String,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
}

/// The model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Model {
    /// Name under which it was asked for.
    pub name: String,
    /// Digest of the manifest.
    pub manifest_digest: Hex256,
    /// Root of OpenSSF Model Signing; `null` if the transcript has none.
    #[serde(deserialize_with = "present")]
    pub oms_root: Option<Hex256>,
}

/// A profile or a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Id.
    pub id: String,
    /// SHA-256 of the file.
    pub digest: Hex256,
}

/// Numbers of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Of the prompt.
    #[serde(rename = "in")]
    pub input: u64,
    /// Generated.
    #[serde(rename = "out")]
    pub output: u64,
}

/// A commitment: what is recorded, of how many leaves, under which root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commitment {
    /// The mode's word.
    pub mode: String,
    /// Leaves.
    pub count: u64,
    /// RFC 9162 root; `null` if nothing is committed to.
    #[serde(deserialize_with = "present")]
    pub root: Option<Hex256>,
}

impl Statement {
    /// Copies what a transcript states.
    ///
    /// # Errors
    /// [`InteropError::Time`].
    pub fn of(transcript: &Transcript, exporter: Exporter) -> Result<Self, InteropError> {
        let stated = transcript.statement();
        let seconds = stated.claimed_time;
        if seconds > LAST_SECOND {
            return Err(InteropError::Time { seconds });
        }
        let subject = |name: &str, digest| Subject {
            name: name.to_owned(),
            digest: DigestSet { sha256: Hex256(digest) },
        };
        let mut subjects = vec![subject(TRANSCRIPT_SUBJECT, transcript.digest())];
        if !stated.tokens_out.is_empty() {
            let words: Vec<u8> = stated.tokens_out.iter().flat_map(|id| id.to_le_bytes()).collect();
            subjects.push(subject(TOKENS_SUBJECT, sha256(&[&words])));
        }
        let artifact = |artifact: &StatedArtifact| Artifact {
            id: artifact.id.clone(),
            digest: Hex256(artifact.digest),
        };
        let commitment = |mode: &str, count, root: Option<_>| Commitment {
            mode: mode.to_owned(),
            count,
            root: root.map(Hex256),
        };
        let (logits, trace) = (&stated.logits, &stated.trace);
        let predicate = Predicate {
            transcript_checked: false,
            exporter,
            format_version: stated.format_version,
            numerics: stated.numerics,
            producer: Tool { name: stated.tool.name.clone(), version: stated.tool.version.clone() },
            transcript_key_id: HexBytes(transcript.key_id().0.to_vec()),
            model: Model {
                name: stated.model.name.clone(),
                manifest_digest: Hex256(stated.model.digest),
                oms_root: stated.model.oms_root.map(Hex256),
            },
            profile: artifact(&stated.profile),
            catalogue: artifact(&stated.catalogue),
            stack: stated.stack.clone(),
            engine: stated.environment.engine.word().to_owned(),
            tokens: Tokens {
                input: stated.tokens_in.len() as u64,
                output: stated.tokens_out.len() as u64,
            },
            finish: stated.finish.word().to_owned(),
            claimed_time: rfc3339(seconds),
            nonce: stated.nonce.clone().map(HexBytes),
            logits: commitment(logits.mode.word(), logits.count, Some(logits.root)),
            trace: commitment(trace.mode.word(), trace.count, trace.root),
        };
        Ok(Self {
            statement_type: STATEMENT_TYPE.to_owned(),
            subject: subjects,
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate,
        })
    }

    /// Writes the statement: the payload of an envelope.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("text, numbers and lists of them have a JSON form")
    }

    /// Reads a statement.
    ///
    /// # Errors
    /// [`InteropError::OtherType`] if it is a statement of another type;
    /// [`InteropError::Statement`] for anything else that no export has.
    pub fn from_json(bytes: &[u8]) -> Result<Self, InteropError> {
        let refuse = |reason: String| InteropError::Statement { reason };
        json::refuse_repeated_keys(bytes).map_err(refuse)?;
        let read = |error: serde_json::Error| refuse(error.to_string());
        // The types first: another one explains every later surprise.
        let types: Types = serde_json::from_slice(bytes).map_err(read)?;
        for (member, found, expected) in [
            ("_type", types.statement_type, STATEMENT_TYPE),
            ("predicateType", types.predicate_type, PREDICATE_TYPE),
        ] {
            if found != expected {
                return Err(InteropError::OtherType { member, found, expected });
            }
        }
        let statement: Self = serde_json::from_slice(bytes).map_err(read)?;
        statement.check().map_err(refuse)?;
        Ok(statement)
    }

    /// Digest of the transcript.
    pub fn transcript(&self) -> crate::num::Digest {
        self.subject[0].digest.sha256.0 // `check`: there is one.
    }

    /// Requires that this is what an export of `transcript` says, whoever made it when.
    ///
    /// # Errors
    /// [`InteropError::OtherTranscript`], [`InteropError::Differs`].
    pub fn belongs_to(&self, transcript: &Transcript) -> Result<(), InteropError> {
        let (expected, found) = (transcript.digest(), self.transcript());
        if expected != found {
            return Err(InteropError::OtherTranscript { expected, found });
        }
        let due = Self::of(transcript, self.predicate.exporter.clone())?;
        match first_difference(self, &due) {
            Some(member) => Err(InteropError::Differs { transcript: expected, member }),
            None => Ok(()),
        }
    }

    /// Rules that the types do not express.
    fn check(&self) -> Result<(), String> {
        let predicate = &self.predicate;
        if predicate.transcript_checked {
            return Err("transcriptChecked is true, an export checks nothing".into());
        }
        if predicate.format_version != FORMAT_VERSION {
            let found = predicate.format_version;
            return Err(format!("formatVersion is {found}, only {FORMAT_VERSION} is known"));
        }
        let names: Vec<&str> = self.subject.iter().map(|subject| subject.name.as_str()).collect();
        let due: &[&str] = match predicate.tokens.output {
            0 => &[TRANSCRIPT_SUBJECT],
            1.. => &[TRANSCRIPT_SUBJECT, TOKENS_SUBJECT],
        };
        if names != due {
            return Err(format!("the subjects are {names:?}, {due:?} are due"));
        }
        if predicate.transcript_key_id.0.len() != 8 {
            return Err("transcriptKeyId must have 8 bytes".into());
        }
        let times =
            [("exporter.time", &predicate.exporter.time), ("claimedTime", &predicate.claimed_time)];
        for (member, time) in times {
            let seconds = unix_time(time).map_err(|why| format!("{member} is {time:?}: {why}"))?;
            if rfc3339(seconds) != **time {
                return Err(format!("{member} is {time:?}, not in the form {}", rfc3339(seconds)));
            }
        }
        Ok(())
    }
}

/// Path of the first member in which two statements differ.
fn first_difference(found: &Statement, due: &Statement) -> Option<String> {
    let value = |statement| serde_json::to_value(statement).unwrap_or_default();
    difference(&value(found), &value(due), "")
}

fn difference(found: &serde_json::Value, due: &serde_json::Value, at: &str) -> Option<String> {
    if found == due {
        return None;
    }
    let (Some(found), Some(due)) = (found.as_object(), due.as_object()) else {
        return Some(at.to_owned());
    };
    // Both were written from one type, so they have the same members.
    due.iter().find_map(|(name, value)| {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        found.get(name).map_or(Some(path.clone()), |other| difference(other, value, &path))
    })
}

/// The members that say what a statement is.
#[derive(Deserialize)]
struct Types {
    #[serde(rename = "_type")]
    statement_type: String,
    #[serde(rename = "predicateType")]
    predicate_type: String,
}

/// 9999-12-31T23:59:59Z, the last second that RFC 3339 can write.
const LAST_SECOND: u64 = 253_402_300_799;
