//! `attest countersign`: an auditor's signature on a transcript, and the check of some.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args as ClapArgs;
use serde_json::{Value, json};

use super::error::Failure;
use super::output::{Output, plain};
use super::passphrase::Source;
use super::report::Reported;
use super::{CommandResult, Exit, file, paths, signer, verify};
use crate::transcript::countersignature::Countersignature;
use crate::transcript::signed::FormVersion;
use crate::transcript::statement::Tool;
use crate::verify::report::Verdict;
use crate::verify::trust::countersigned::{Given, Objection, Valid};
use crate::verify::trust::rfc3339;

/// Arguments of `attest countersign`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// The transcript to counter-sign.
    #[arg(required_unless_present = "check", conflicts_with = "check")]
    transcript: Option<PathBuf>,
    /// What `attest verify --json` printed on it. Only VERIFIED is counter-signed.
    #[arg(long, value_name = "FILE", required_unless_present = "check", conflicts_with = "check")]
    report: Option<PathBuf>,
    /// The auditor's private key.
    #[arg(long, value_name = "FILE", required_unless_present = "check", conflicts_with = "check")]
    key: Option<PathBuf>,
    #[command(flatten)]
    passphrase: Source,
    /// Counter-sign whatever verdict the report has; it is stated.
    #[arg(long, conflicts_with = "check")]
    any_verdict: bool,
    /// Where to write the counter-signature.
    #[arg(long, value_name = "FILE", default_value = "countersignature.cbor")]
    out: PathBuf,
    /// Replace a file that exists.
    #[arg(long)]
    overwrite: bool,
    /// Check these counter-signatures instead.
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "of")]
    check: Vec<PathBuf>,
    /// The transcript that the checked ones must be of.
    #[arg(long = "transcript", id = "of", value_name = "TRANSCRIPT", requires = "check")]
    of: Option<PathBuf>,
    /// Trust file with the auditors' keys [default: trust.toml in the configuration
    /// folder].
    #[arg(long, value_name = "FILE", requires = "check")]
    trust: Option<PathBuf>,
}

/// Signs, or checks.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    match (&args.transcript, &args.report, &args.key, &args.of) {
        (Some(transcript), Some(report), Some(key), None) => {
            sign(args, transcript, report, key, output)
        }
        (None, None, None, Some(transcript)) => check(args, transcript, output),
        _ => Err(Failure::new(Exit::Usage, "a transcript, its report and a key are needed")),
    }
}

fn sign(
    args: &Args,
    path: &Path,
    report: &Path,
    key_path: &Path,
    output: &Output,
) -> CommandResult {
    let transcript = file::transcript(path)?;
    let reported = Reported::on(&transcript, report)?;
    let verdict = reported.verdict;
    if verdict != Verdict::Verified && !args.any_verdict {
        let message = format!("{} says {}, not VERIFIED", report.display(), verdict.word());
        return Err(Failure::new(Exit::Usage, message).hint(
            "--any-verdict counter-signs it; the verdict is stated and no policy counts it. Who is \
             to counter-sign verifies with a trust file whose policy does not yet demand it",
        ));
    }
    let key = signer::read(key_path, &args.passphrase, output)?;
    if transcript.verify_signature(&key.public()).is_ok() {
        let message = format!("{} signed the transcript itself", key_path.display());
        return Err(Failure::new(Exit::Usage, message)
            .hint("a counter-signature is another party's; nobody counts the prover's own"));
    }
    // Nothing that is read is written over, the key least of all.
    let read: Vec<PathBuf> = [path, report, key_path]
        .iter()
        .filter_map(|path| std::fs::canonicalize(path).ok())
        .collect();
    let read: Vec<&Path> = read.iter().map(PathBuf::as_path).collect();
    let place = paths::Pending::create(&args.out, args.overwrite, &read)?;
    let stated = Countersignature {
        version: FormVersion,
        transcript: transcript.digest(),
        verdict: verdict.into(),
        report: reported.digest,
        time: now(),
        tool: tool(),
    };
    place.finish(&stated.seal(&key))?;
    let id = key.public().id();
    let json = json!({
        "countersignature_file": args.out,
        "transcript": stated.transcript.to_string(),
        "verdict": verdict.word(),
        "report_sha256": stated.report.to_string(),
        "key_id": id.to_string(),
        "time": rfc3339(stated.time),
    });
    let text = format!(
        "{} of transcript {}, counter-signed by key {id}\nwritten to {}",
        verdict.word(),
        stated.transcript,
        plain(&args.out.display().to_string())
    );
    output.result(&json, &text);
    Ok(Exit::Success)
}

/// Judges each file; the exit code is that of the worst.
fn check(args: &Args, transcript: &Path, output: &Output) -> CommandResult {
    let transcript = file::transcript(transcript)?;
    let files = given(&args.check)?;
    let store = verify::trust_file(args.trust.as_deref())?.ok_or_else(|| {
        Failure::new(Exit::Untrusted, "no trust file was given")
            .hint("name one with --trust; the auditors' keys have the role \"auditor\"")
    })?;
    let judged = store.judge_countersignatures(&transcript, &files);
    let exits = || judged.iter().filter_map(|one| one.as_ref().err().map(exit));
    let worst = exits().find(|exit| *exit == Exit::Malformed).or_else(|| exits().next());
    let auditors = judged.iter().flatten().filter(|valid| valid.counts()).count();
    let (mut rows, mut text) = (Vec::new(), String::new());
    for (file, one) in files.iter().zip(&judged) {
        rows.push(row(file, one));
        text += &format!("{}: {}\n", plain(&file.name), sentence(one));
    }
    text += &format!("auditors who say VERIFIED, each counted once: {auditors}\n");
    let json = json!({
        "transcript": transcript.digest().to_string(),
        "countersignatures": rows,
        "verified_by": auditors,
    });
    output.result(&json, &text);
    Ok(worst.unwrap_or(Exit::Success))
}

fn exit(objection: &Objection) -> Exit {
    match objection {
        Objection::Malformed(_) => Exit::Malformed,
        Objection::OtherTranscript { .. } | Objection::Distrust(_) | Objection::Prover { .. } => {
            Exit::Untrusted
        }
    }
}

fn sentence(judged: &Result<Valid<'_>, Objection>) -> String {
    match judged {
        Ok(valid) => {
            let (stated, name) = (&valid.stated, plain(&valid.auditor.name));
            let again = if valid.is_repeated { ", the same auditor again" } else { "" };
            format!(
                "ok: {name:?} may sign as auditor and says {} at {}, report {}{again}",
                stated.verdict.word(),
                rfc3339(stated.time),
                stated.report
            )
        }
        Err(objection) => format!("FAILED: {}", plain(&objection.to_string())),
    }
}

fn row(file: &Given, judged: &Result<Valid<'_>, Objection>) -> Value {
    match judged {
        Ok(valid) => json!({
            "file": file.name,
            "valid": true,
            "auditor": valid.auditor.name,
            "key_id": valid.key_id.to_string(),
            "verdict": valid.stated.verdict.word(),
            "report_sha256": valid.stated.report.to_string(),
            "time": rfc3339(valid.stated.time),
            "counted": valid.counts(),
        }),
        Err(objection) => json!({
            "file": file.name,
            "valid": false,
            "reason": objection.to_string(),
            "exit": exit(objection).code(),
        }),
    }
}

/// Files that may be counter-signatures.
pub(super) fn given(paths: &[PathBuf]) -> Result<Vec<Given>, Failure> {
    let read =
        |path: &PathBuf| Ok(Given { name: path.display().to_string(), bytes: paths::read(path)? });
    paths.iter().map(read).collect()
}

/// This clock's time (Unix time).
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// This program.
pub(super) fn tool() -> Tool {
    Tool { name: env!("CARGO_PKG_NAME").into(), version: env!("CARGO_PKG_VERSION").into() }
}
