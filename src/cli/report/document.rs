//! Reading what `attest verify --json` printed, strictly: exactly its fields, checks
//! that lead to its verdict.

use serde::{Deserialize, Deserializer};

use crate::num::Digest;
use crate::transcript::opening::{Draw, MAX_NONCE_LEN_BYTES};
use crate::transcript::statement::Statement;
use crate::verify::report::{Check, Finding, Outcome, Report, SUBJECTS, Subject, Verdict};

/// The report on one transcript.
#[derive(Debug)]
pub(super) struct Document {
    /// The verdict, which is what the checks lead to.
    pub(super) verdict: Verdict,
    /// Who verified, with what.
    pub(super) verifier: Verifier,
    /// Digest of the statement; `None` if the file is no transcript.
    pub(super) transcript: Option<Digest>,
    /// Which cells were to be checked; `None` if everything was.
    pub(super) draw: Option<Draw>,
    /// Layers of the model, if it is the one stated.
    pub(super) layers: Option<usize>,
    /// The generated text, of VERIFIED and PARTIAL only.
    pub(super) text: Option<String>,
    /// What rests on the signer's word.
    pub(super) claims: Vec<Claim>,
    /// The checks, every subject once, in order.
    pub(super) checks: Vec<Check>,
}

/// Who verified, with what.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Verifier {
    name: String,
    /// Version of the program.
    pub(super) version: String,
    /// Plan version.
    pub(super) numerics: u32,
    /// Instructions that the emulator used.
    pub(super) simd: String,
    /// The program's profile.
    pub(super) profile: Artifact,
    /// Its general catalogue.
    pub(super) catalogue: Artifact,
    /// The trust file, if there was one.
    #[serde(deserialize_with = "present")]
    pub(super) trust_file: Option<String>,
    /// Its digest.
    #[serde(deserialize_with = "present")]
    pub(super) trust_file_sha256: Option<String>,
    /// When, by the clock of that machine (RFC 3339).
    pub(super) checked_at: String,
}

/// A file by id and digest.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Artifact {
    /// Its id.
    pub(super) id: String,
    /// Its SHA-256.
    pub(super) digest: String,
}

/// A field that rests on the signer's word.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    /// The field.
    pub(super) field: String,
    /// Its value.
    pub(super) value: String,
}

impl Document {
    /// Reads the bytes of a report.
    ///
    /// # Errors
    /// A sentence: the field that is missing or unknown, or what contradicts what.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let written: Written = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let checks: Vec<Check> =
            written.checks.into_iter().map(WrittenCheck::read).collect::<Result<_, _>>()?;
        if !checks.iter().map(|check| check.subject).eq(SUBJECTS) {
            return Err("its checks are not those of a report, each once and in order".into());
        }
        let report = Report { checks };
        let (verdict, exit) = (report.verdict(), report.verdict().exit_code());
        if (written.verdict, written.exit) != (verdict, exit) {
            return Err(format!(
                "it says {} with exit code {}, its checks lead to {} with {exit}",
                written.verdict.word(),
                written.exit,
                verdict.word()
            ));
        }
        if written.verifier.name != "attest" {
            return Err(format!("it is by {:?}, not by attest", written.verifier.name));
        }
        let transcript = match written.transcript {
            None => None,
            Some(hex) => {
                Some(Digest::from_hex(&hex).ok_or("its transcript is not a SHA-256 in hex")?)
            }
        };
        let draw = written.draw.map(WrittenDraw::read).transpose()?;
        if written.layers.is_some_and(|layers| !(1..=MOST_LAYERS).contains(&layers)) {
            return Err(format!("its model has layers below 1 or above {MOST_LAYERS}"));
        }
        let partial = |check: &&Check| matches!(check.outcome, Outcome::Partial { .. });
        let partial: Vec<Subject> =
            report.checks.iter().filter(partial).map(|check| check.subject).collect();
        if !(partial.is_empty() || draw.is_some() && partial == [Subject::Coverage]) {
            return Err("only the coverage of a draw is in part".into());
        }
        Ok(Self {
            verdict,
            verifier: written.verifier,
            transcript,
            draw,
            layers: written.layers,
            text: written.text,
            claims: written.claims,
            checks: report.checks,
        })
    }

    /// Whether the coverage is that of the draw in this transcript: in part exactly if cells
    /// were left out.
    ///
    /// # Errors
    /// A sentence that says what it is instead.
    pub(super) fn require_coverage(&self, statement: &Statement) -> Result<(), String> {
        let (Some(draw), Some(layers)) = (&self.draw, self.layers) else { return Ok(()) };
        let positions: u64 = statement.passes.iter().map(|pass| pass.token_count).sum();
        let all = draw.cells >= positions.saturating_mul(layers as u64);
        match self.outcome(Subject::Coverage) {
            Some(Outcome::Passed { .. }) if !all => {
                Err(format!("{} cells were drawn, which are not all", draw.cells))
            }
            Some(Outcome::Partial { .. }) if all => {
                Err(format!("{} cells were drawn, which are all", draw.cells))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// How a check ended.
    pub(super) fn outcome(&self, subject: Subject) -> Option<&Outcome> {
        self.checks.iter().find(|check| check.subject == subject).map(|check| &check.outcome)
    }

    /// The first difference, if one was found.
    pub(super) fn finding(&self) -> Option<&Finding> {
        match self.outcome(Subject::Execution)? {
            Outcome::Failed { finding, .. } => finding.as_ref(),
            Outcome::Passed { .. }
            | Outcome::Partial { .. }
            | Outcome::NotAsked { .. }
            | Outcome::NotDecided { .. } => None,
        }
    }
}

/// The fields as they are written. All are required, `null` or not.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    verdict: Verdict,
    exit: u8,
    /// Of a report among several.
    #[serde(default, rename = "transcript_file")]
    _transcript_file: Option<String>,
    verifier: Verifier,
    #[serde(deserialize_with = "present")]
    transcript: Option<String>,
    #[serde(deserialize_with = "present")]
    draw: Option<WrittenDraw>,
    #[serde(deserialize_with = "present")]
    layers: Option<usize>,
    #[serde(deserialize_with = "present")]
    text: Option<String>,
    claims: Vec<Claim>,
    #[serde(deserialize_with = "present", rename = "digests")]
    _digests: Option<Digests>,
    checks: Vec<WrittenCheck>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Digests {
    #[serde(rename = "files")]
    _files: usize,
    #[serde(rename = "from_cache")]
    _from_cache: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDraw {
    cells: u64,
    nonce: String,
}

impl WrittenDraw {
    fn read(self) -> Result<Draw, String> {
        let nonce = hex::decode(&self.nonce).ok();
        let nonce = nonce.filter(|nonce| (1..=MAX_NONCE_LEN_BYTES).contains(&nonce.len()));
        let nonce = nonce.ok_or("its nonce is not 1 to 64 bytes in hex")?;
        match self.cells {
            0 => Err("no cell was drawn".into()),
            cells => Ok(Draw { cells, nonce }),
        }
    }
}

/// More layers than any model has; a map of more is not drawn.
const MOST_LAYERS: usize = 4096;

/// A check with the fields of every outcome.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCheck {
    subject: Subject,
    outcome: String,
    detail: Option<String>,
    reason: Option<String>,
    leads_to: Option<Verdict>,
    finding: Option<Finding>,
}

impl WrittenCheck {
    fn read(self) -> Result<Check, String> {
        let Self { subject, outcome, detail, reason, leads_to, finding } = self;
        let outcome = match (outcome.as_str(), detail, reason, leads_to, finding) {
            ("passed", Some(detail), None, None, None) => Outcome::Passed { detail },
            ("failed", Some(detail), None, Some(leads_to), finding)
                if leads_to != Verdict::Verified =>
            {
                Outcome::Failed { leads_to, detail, finding }
            }
            ("partial", Some(detail), None, None, None) => Outcome::Partial { detail },
            ("not_asked", None, Some(reason), None, None) => Outcome::NotAsked { reason },
            ("not_decided", None, Some(reason), None, None) => Outcome::NotDecided { reason },
            (outcome, ..) => {
                return Err(format!("check {subject:?}: not the fields of outcome {outcome:?}"));
            }
        };
        Ok(Check { subject, outcome })
    }
}

/// Reads a value that may be `null` but not absent.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}
