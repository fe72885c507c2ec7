//! `attest verify`: transcript → report.

mod several;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args as ClapArgs;

use super::basis::Basis;
use super::digests::Remembered;
use super::error::Failure;
use super::output::{Output, plain};
use super::progress::Status;
use super::{CommandResult, Exit, challenge, countersign, dry_run, file, paths};
use crate::isa::mma::Simd;
use crate::model::locate::Places;
use crate::model::{Content, ModelError};
use crate::num::{Digest, sha256};
use crate::plan::PLAN_VERSION;
use crate::transcript::opening::Challenge;
use crate::transcript::statement::Artifact;
use crate::transcript::statement::ModelManifest;
use crate::verify::report::{Check, Outcome, Report, Subject, Verdict};
use crate::verify::trust::countersigned::Given;
use crate::verify::trust::{TrustStore, rfc3339};
use crate::verify::{Anchor, Claim, Input, Request, Verified, verify};

/// Arguments of `attest verify`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// The transcript; `-` reads it from standard input. Several are verified one
    /// after the other; the exit code is that of the worst verdict, in the order
    /// MALFORMED, UNTRUSTED, MISMATCH, INCOMPLETE, PARTIAL, VERIFIED.
    #[arg(required = true, value_name = "TRANSCRIPT")]
    transcripts: Vec<PathBuf>,
    /// Model name or folder [default: the name in the transcript, looked up in
    /// $ATTEST_MODELS and in the Hugging Face cache].
    #[arg(long)]
    model: Option<String>,
    /// Trust file [default: trust.toml in the configuration folder].
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Nonce that the transcript must carry (hex).
    #[arg(long, value_name = "HEX", value_parser = parse_hex)]
    nonce: Option<Nonce>,
    /// Check the cells of this challenge, which the file must open, and the choice of
    /// every token, instead of everything; the verdict is PARTIAL at best, unless the
    /// challenge asks for all cells.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    challenge: Option<PathBuf>,
    /// A counter-signature on the transcript, for the `[policy]` of the trust file or to be
    /// named in the report; may be given again.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure_accept_any_key")]
    countersignature: Vec<PathBuf>,
    /// Skip signature and trust, for demonstrations; the verdict is UNTRUSTED at best.
    #[arg(long, conflicts_with = "trust")]
    insecure_accept_any_key: bool,
    /// Take digests of weight files that are as an earlier run with this option
    /// found them from the cache, and keep new ones there. Whoever can write the
    /// cache decides what is found in it.
    #[arg(long)]
    trust_cache: bool,
    /// Where outputs differ, do not look for a cause: try no undeclared recipe, GPU,
    /// epsilon or quantised weights.
    #[arg(long)]
    no_diagnosis: bool,
    /// Say what the verification would cost here, and verify nothing. Of the model
    /// only config.json is needed.
    #[arg(long, conflicts_with = "trust_cache")]
    dry_run: bool,
}

impl Args {
    /// The nonce that was asked for.
    pub(super) fn nonce(&self) -> Option<Vec<u8>> {
        self.nonce.clone().map(|nonce| nonce.0)
    }
}

/// A nonce as given on the command line.
#[derive(Clone, Debug)]
pub(super) struct Nonce(pub Vec<u8>);

/// Parses a nonce.
pub(super) fn parse_hex(text: &str) -> Result<Nonce, String> {
    if text.is_empty() {
        return Err("the nonce is empty".into());
    }
    hex::decode(text).map(Nonce).map_err(|error| error.to_string())
}

/// Verifies and prints the report, or several reports.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let [path] = &args.transcripts[..] else { return several::run(args, output) };
    let file = file::input(path)?;
    let checker = Checker::new(args, output)?;
    if args.dry_run {
        return dry_run::run(args, file, checker.anchor(), output);
    }
    let challenge = args.challenge.as_deref().map(challenge::read).transpose()?;
    let checked = checker.check(file, challenge.map(|asked| asked.0))?;
    checker.remembered.save(output);
    output.result(&checked.json, &checked.text);
    hints(args, checker.trust.is_some(), &checked.report, output);
    Ok(checked.report.verdict().into())
}

/// What one transcript or several are checked with.
struct Checker<'a> {
    args: &'a Args,
    output: &'a Output,
    trust: Option<Trust>,
    countersignatures: Vec<Given>,
    remembered: Remembered,
}

/// A report, as it is printed.
struct Checked {
    report: Report,
    json: serde_json::Value,
    text: String,
}

impl<'a> Checker<'a> {
    fn new(args: &'a Args, output: &'a Output) -> Result<Self, Failure> {
        let trust = match args.insecure_accept_any_key {
            true => None,
            false => read_trust(args.trust.as_deref())?,
        };
        if args.insecure_accept_any_key {
            output.note("warning: any key is accepted; this shows nothing about who signed");
        }
        let countersignatures = countersign::given(&args.countersignature)?;
        // A dry run hashes nothing.
        let remembered = Remembered::open(args.trust_cache, output);
        Ok(Self { args, output, trust, countersignatures, remembered })
    }

    fn anchor(&self) -> Anchor<'_> {
        match &self.trust {
            Some(trust) => Anchor::Countersigned(&trust.store, &self.countersignatures),
            None if self.args.insecure_accept_any_key => Anchor::Anyone,
            None => Anchor::Nothing,
        }
    }

    fn check(&self, file: Input, challenge: Option<Challenge>) -> Result<Checked, Failure> {
        let mut progress = self.output.progress("re-executing");
        let mut announce = |alternatives: usize| {
            self.output.note(&format!(
                "note: an output differs; trying up to {alternatives} undeclared ways of computing \
                 it for a cause (--no-diagnosis skips this)"
            ));
        };
        let done = verify(Request {
            file,
            anchor: self.anchor(),
            nonce: self.args.nonce(),
            challenge,
            simd: Simd::detect(),
            open_model: &|manifest: &ModelManifest| {
                let folder = folder(self.args, manifest)?;
                Ok(Content::open(&folder)?.with_cache(self.remembered.cache()))
            },
            progress: &mut |now| progress.show(&Status::of(now)),
            diagnosing: if self.args.no_diagnosis { None } else { Some(&mut announce) },
        });
        drop(progress);
        let by = Verifier::describe(self.trust.as_ref())?;
        let (json, text) = (json(&done, &by)?, text(&done, &by));
        Ok(Checked { report: done.report, json, text })
    }
}

/// What to do about a report's failures, where the command line can.
pub(super) fn hints(args: &Args, has_store: bool, report: &Report, output: &Output) {
    let failed = |subject| report.failures().any(|failed| failed == subject);
    if failed(Subject::Trust) && !has_store && !args.insecure_accept_any_key {
        let place = paths::trust().map_or_else(
            || "trust.toml in the folder $ATTEST_CONFIG".into(),
            |path| path.display().to_string(),
        );
        output.note(&format!("hint: name a trust file with --trust, or make {place}"));
    }
    // Found by the name in the transcript, or not found.
    if failed(Subject::Model) && args.model.is_none() {
        output.note("hint: name the folder of the model with --model FOLDER");
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Verified => Self::Success,
            Verdict::Mismatch => Self::Mismatch,
            Verdict::Untrusted => Self::Untrusted,
            Verdict::Malformed => Self::Malformed,
            Verdict::Incomplete => Self::Incomplete,
            Verdict::Partial => Self::Partial,
        }
    }
}

/// The folder of the model that was named, or else of the one that a manifest names.
pub(super) fn folder(args: &Args, manifest: &ModelManifest) -> Result<PathBuf, ModelError> {
    let places = Places::from_env();
    match &args.model {
        Some(name) => places.resolve(name),
        // The signer chose this name: it must not open a path.
        None => places.find(&manifest.name),
    }
}

/// A trust file as it was read.
pub(super) struct Trust {
    /// The file.
    pub(super) path: PathBuf,
    /// Digest of its bytes.
    pub(super) digest: Digest,
    /// The keys.
    pub(super) store: TrustStore,
}

/// Who verified, with what: the part of a report that another reader needs to
/// judge or repeat it.
struct Verifier {
    version: &'static str,
    numerics: u32,
    simd: &'static str,
    profile: Artifact,
    catalogue: Artifact,
    trust: Option<(String, Digest)>,
    at: String,
}

impl Verifier {
    fn describe(trust: Option<&Trust>) -> Result<Self, Failure> {
        let basis = Basis::general()?;
        let catalogue = basis.catalogue();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            numerics: PLAN_VERSION,
            simd: Simd::detect().name(),
            profile: basis.profile,
            catalogue,
            trust: trust.map(|trust| (trust.path.display().to_string(), trust.digest)),
            at: rfc3339(now),
        })
    }

    fn text(&self) -> String {
        let Self { version, numerics, simd, at, .. } = self;
        let trust = match &self.trust {
            Some((path, digest)) => format!("trust file {} (SHA-256 {digest})", plain(path)),
            None => "no trust file".into(),
        };
        format!("attest {version}, numerics {numerics}, {simd}, {trust}, at {at} by this clock")
    }

    fn json(&self) -> serde_json::Value {
        let artifact =
            |a: &Artifact| serde_json::json!({ "id": a.id, "digest": a.digest.to_string() });
        serde_json::json!({
            "name": "attest",
            "version": self.version,
            "numerics": self.numerics,
            "simd": self.simd,
            "profile": artifact(&self.profile),
            "catalogue": artifact(&self.catalogue),
            "trust_file": self.trust.as_ref().map(|(path, _)| path),
            "trust_file_sha256": self.trust.as_ref().map(|(_, digest)| digest.to_string()),
            "checked_at": self.at,
        })
    }
}

/// The keys of the trust file named, or of the configured one if it exists.
pub(super) fn trust_file(named: Option<&Path>) -> Result<Option<TrustStore>, Failure> {
    Ok(read_trust(named)?.map(|trust| trust.store))
}

/// As [`trust_file`], with the file itself.
pub(super) fn read_trust(named: Option<&Path>) -> Result<Option<Trust>, Failure> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => match paths::trust().filter(|path| path.exists()) {
            Some(path) => path,
            None => return Ok(None),
        },
    };
    let bytes = paths::read(&path)?;
    let digest = sha256(&[&bytes]);
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new(Exit::Usage, format!("{}: not text", path.display())))?;
    let store = TrustStore::from_toml(&text)
        .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", path.display())))?;
    Ok(Some(Trust { path, digest, store }))
}

fn text(done: &Verified, by: &Verifier) -> String {
    let mut text = String::new();
    if let Some(transcript) = &done.transcript {
        let _ = writeln!(text, "transcript   {}", transcript.digest());
    }
    for check in &done.report.checks {
        text.push_str(&row(check));
        if let Outcome::Failed { finding: Some(finding), .. } = &check.outcome
            && let Some(diagnosis) = &finding.diagnosis
        {
            let _ = writeln!(text, "{:<12} {:<7} {diagnosis}", "diagnosis", "");
        }
    }
    if !done.claims.is_empty() {
        let claim = |claim: &Claim| format!("{} {}", claim.field, plain(&claim.value));
        let claims: Vec<String> = done.claims.iter().map(claim).collect();
        let claims = claims.join("; ");
        let _ = writeln!(text, "{:<12} {:<7} not checked: {claims}", "signer says", "");
    }
    let _ = writeln!(text, "{:<12} {:<7} {}", "checked by", "", by.text());
    let verdict = done.report.verdict();
    if verdict.holds()
        && let Some(generated) = &done.text
    {
        let _ = writeln!(text, "text         {generated:?}");
    }
    let _ = writeln!(text, "{}", verdict.word());
    text
}

/// A check as a line.
pub(super) fn row(check: &Check) -> String {
    let (mark, detail) = match &check.outcome {
        Outcome::Passed { detail } => ("ok", detail),
        Outcome::Partial { detail } => ("partly", detail),
        Outcome::Failed { detail, .. } => ("FAILED", detail),
        Outcome::NotAsked { reason } => ("none", reason),
        Outcome::NotDecided { reason } => ("-", reason),
    };
    format!("{:<12} {mark:<7} {}\n", subject(check.subject), plain(detail))
}

fn subject(subject: Subject) -> String {
    serde_json::to_value(subject)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn json(done: &Verified, by: &Verifier) -> Result<serde_json::Value, Failure> {
    let internal = |error: serde_json::Error| Failure::new(Exit::Internal, error.to_string());
    let draw = done
        .draw
        .as_ref()
        .map(|draw| serde_json::json!({ "cells": draw.cells, "nonce": hex::encode(&draw.nonce) }));
    Ok(serde_json::json!({
        "verdict": done.report.verdict().word(),
        "exit": done.report.verdict().exit_code(),
        "verifier": by.json(),
        "transcript": done.transcript.as_ref().map(|t| t.digest().to_string()),
        "draw": draw,
        "layers": done.layers,
        "text": done.text.as_ref().filter(|_| done.report.verdict().holds()),
        "claims": serde_json::to_value(&done.claims).map_err(internal)?,
        "digests": done.digests.map(|digests| {
            serde_json::json!({ "files": digests.files, "from_cache": digests.from_cache })
        }),
        "checks": serde_json::to_value(&done.report.checks).map_err(internal)?,
    }))
}
