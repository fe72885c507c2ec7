//! Checking a transcript: the ordered list of checks (`spec/verification.md`).
//!
//! What a verdict depends on is this module and everything to its left. It takes
//! bytes and a model, not paths.

mod admission;
mod claims;
mod compare;
mod diagnosis;
mod environment;
mod execution;
pub mod forecast;
mod identity;
mod recorded;
pub mod report;
mod sampling;
mod spot;
pub mod tables;
pub mod trust;

use std::fs::File;

use crate::engine::generate::GenerateError;
use crate::engine::{Progress, generate};
use crate::isa::mma::Simd;
use crate::model::{Config, Content, ModelError};
use crate::plan::PlanError;
use crate::transcript::capture;
use crate::transcript::opening::{Challenge, Draw};
use crate::transcript::statement::{ModelManifest, Statement};
use crate::transcript::{Transcript, TranscriptError};

use admission::{Admitted, admit};
pub use claims::Claim;
use environment::{Refusal, check_logits, check_plans, look_up};
use execution::{How, Work, execute};
use recorded::Recorded;
use report::{Report, Subject, Verdict};
use sampling::{check_choices, check_rule};
use trust::TrustStore;
use trust::countersigned::Given;

/// Whose signature counts.
#[derive(Clone, Copy, Debug)]
pub enum Anchor<'a> {
    /// The keys of a trust store.
    Store(&'a TrustStore),
    /// The same, and counter-signatures that are judged by them.
    Countersigned(&'a TrustStore, &'a [Given]),
    /// Anybody's: signature and trust are skipped and the verdict is UNTRUSTED at
    /// best.
    Anyone,
    /// None was given.
    Nothing,
}

/// A file that may be a transcript.
#[derive(Debug)]
pub enum Input {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// The file where it is: it is read as it is needed.
    File(File),
}

impl Input {
    /// Reads the transcript.
    ///
    /// # Errors
    /// [`TranscriptError`] of class `Malformed` or `Unreadable`.
    pub fn read(self) -> Result<Transcript, TranscriptError> {
        match self {
            Self::Bytes(bytes) => Transcript::parse(bytes),
            Self::File(file) => Transcript::open(file),
        }
    }
}

impl From<Vec<u8>> for Input {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// What to verify, against what.
pub struct Request<'a> {
    /// The transcript's file.
    pub file: Input,
    /// Whose signature counts.
    pub anchor: Anchor<'a>,
    /// The nonce that was asked for, if one was.
    pub nonce: Option<Vec<u8>>,
    /// Checks the cells of this challenge instead of all, if the file opens them, and the
    /// choice of every token.
    pub challenge: Option<Challenge>,
    /// How the emulator computes products; changes no bit.
    pub simd: Simd,
    /// Opens the model that a manifest names. Its files are digested beside the
    /// re-execution.
    pub open_model: &'a dyn Fn(&ModelManifest) -> Result<Content, ModelError>,
    /// Is told how much of the re-execution is done.
    pub progress: &'a mut dyn FnMut(&Progress<'_>),
    /// Where outputs differ, is told how many undeclared ways of computing are now tried,
    /// so that the report can name one that gives the recorded bits; without it none is
    /// tried. It changes no verdict.
    pub diagnosing: Option<&'a mut dyn FnMut(usize)>,
}

/// A report and what it is about.
#[derive(Debug)]
pub struct Verified {
    /// The checks.
    pub report: Report,
    /// The transcript, unless it is malformed.
    pub transcript: Option<Transcript>,
    /// Which cells were to be checked; `None` if everything was.
    pub draw: Option<Draw>,
    /// Text of the generated tokens, if the model is the one stated.
    pub text: Option<String>,
    /// What rests on the signer's word; empty if nobody knows who that is.
    pub claims: Vec<Claim>,
    /// Where the digests of the model's files came from, if it is the one stated.
    pub digests: Option<Digests>,
    /// Layers of the model, if it is the one stated.
    pub layers: Option<usize>,
}

/// Where digests came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digests {
    /// Files that define the model.
    pub files: usize,
    /// How many of their digests were remembered and not computed.
    pub from_cache: usize,
}

/// Runs every check and reports them all.
///
/// A mismatch is a result, not an error: this function has none.
pub fn verify(request: Request<'_>) -> Verified {
    let challenge = request.challenge;
    let draw = challenge.as_ref().map(|challenge| challenge.draw.clone());
    let admitted = admit(request.file, &request.anchor, request.nonce.as_deref());
    let Admitted { mut report, transcript, claims } = match admitted {
        Ok(admitted) => admitted,
        Err(refused) => return Verified { draw, ..*refused },
    };
    let claims = match challenge {
        Some(_) => claims::of_spot_check(claims, &transcript),
        None => claims,
    };
    let statement = transcript.statement();
    let (mut text, mut digests, mut layers) = (None, None, None);
    let identified = (request.open_model)(&statement.model)
        .map_err(|error| identity::unreadable(&error))
        .and_then(|content| {
            let (manifest, staged) = identity::beside(&content, &statement.model, |refuted| {
                let mut staged = Report::default();
                check_prompt(&mut staged, statement, &content);
                let how = How {
                    simd: request.simd,
                    progress: request.progress,
                    // Not the same type: the one is let go earlier.
                    diagnosing: request
                        .diagnosing
                        .map(|announce| announce as &mut dyn FnMut(usize)),
                    refuted,
                };
                check_computation(&mut staged, &transcript, &content, how, challenge.as_ref());
                staged
            })?;
            Ok((content, manifest, staged))
        });
    let report = match identified {
        Err(Refusal { leads_to, detail }) => {
            report.fail(Subject::Model, leads_to, detail);
            report.close("not reached: the model is not the one stated")
        }
        Ok((content, manifest, staged)) => {
            report.pass(Subject::Model, identity::detail(&content, &statement.model, &manifest));
            for check in staged.checks {
                report.push(check.subject, check.outcome);
            }
            text = content.tokenizer().decode(&statement.tokens_out).ok();
            let (files, from_cache) = (manifest.files().len(), manifest.from_cache());
            digests = Some(Digests { files, from_cache });
            layers = Some(content.config().num_hidden_layers);
            report.close("not reached")
        }
    };
    Verified { report, transcript: Some(transcript), draw, text, claims, digests, layers }
}

fn check_prompt(report: &mut Report, statement: &Statement, model: &Content) {
    match model.tokenizer().encode(&statement.prompt) {
        Ok(tokens) if tokens == statement.tokens_in => {
            let (bytes, count) = (statement.prompt.len(), tokens.len());
            report.pass(Subject::Prompt, format!("{bytes} bytes give the {count} token ids"));
        }
        Ok(tokens) => {
            let stated = &statement.tokens_in;
            let at = tokens.iter().zip(stated).position(|(a, b)| a != b);
            let at = at.unwrap_or(tokens.len().min(stated.len()));
            let id = |ids: &[u32]| ids.get(at).map_or("no token".into(), u32::to_string);
            let detail = format!(
                "the prompt gives {} tokens, the transcript has {}; token {at} is {} and {} there",
                tokens.len(),
                stated.len(),
                id(&tokens),
                id(stated)
            );
            report.fail(Subject::Prompt, Verdict::Mismatch, detail);
        }
        Err(error) => report.fail(Subject::Prompt, Verdict::Mismatch, error.to_string()),
    }
}

/// Environment, execution, sampling and coverage.
fn check_computation(
    report: &mut Report,
    transcript: &Transcript,
    model: &Content,
    how: How<'_>,
    challenge: Option<&Challenge>,
) {
    let statement = transcript.statement();
    let Some(work) = prepare(report, transcript, model.config()) else { return };
    if let Err(detail) = check_rule(statement, model).and_then(|()| check_choices(transcript)) {
        report.fail(Subject::Sampling, Verdict::Mismatch, detail);
        return;
    }
    match challenge {
        Some(challenge) => spot::check(report, transcript, model, work, how, challenge),
        None if !spot::check_openings(report, transcript, &work) => {}
        None => execute(report, transcript, model, work, how),
    }
}

/// Environment, and the trace's commitment: everything that can be checked of the
/// computation before it is done. `None` if something failed.
fn prepare<'a>(
    report: &mut Report,
    transcript: &'a Transcript,
    config: &Config,
) -> Option<Work<'a>> {
    let statement = transcript.statement();
    let prepared = look_up(statement).and_then(|known| {
        check_logits(statement, config)?;
        let (tokens_in, tokens_out) = (&statement.tokens_in, &statement.tokens_out);
        let batches: Vec<_> = statement.passes.iter().map(capture::stated_batch).collect();
        let contract = known.contract();
        let layout = generate::layout_in_batches(config, contract, tokens_in, tokens_out, &batches);
        let (plans, tokens) = layout.map_err(|error| Refusal {
            leads_to: match error {
                // A larger product than anyone measured contradicts nothing.
                GenerateError::Plan(PlanError::Unlisted { .. }) => Verdict::Incomplete,
                GenerateError::EmptyPrompt
                | GenerateError::NothingToGenerate
                | GenerateError::TokenRange { .. }
                | GenerateError::Context { .. }
                | GenerateError::Batch { .. }
                | GenerateError::Prompt { .. }
                | GenerateError::Plan(_)
                | GenerateError::Engine(_) => Verdict::Mismatch,
            },
            detail: error.to_string(),
        })?;
        let detail = check_plans(statement, &known, &plans)?;
        Ok((known, plans, tokens, detail))
    });
    let (known, plans, tokens, detail) = match prepared {
        Ok(prepared) => prepared,
        Err(Refusal { leads_to, detail }) => {
            report.fail(Subject::Environment, leads_to, detail);
            return None;
        }
    };
    report.pass(Subject::Environment, detail);
    // Only now: a leaf is bound to names and shapes, which are the plan's.
    match Recorded::new(transcript, &plans) {
        Ok(recorded) => Some(Work { known, plans, tokens, recorded }),
        Err(Refusal { leads_to, detail }) => {
            report.fail(Subject::Encoding, leads_to, detail);
            None
        }
    }
}
