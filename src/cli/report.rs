//! `attest report`: the page that an auditor files, and the auditor's signature.

mod coverage;
mod difference;
mod document;
mod page;
mod plot;
mod reported;
mod seal;
mod words;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args as ClapArgs;
use serde_json::json;

use super::error::Failure;
use super::output::{Output, plain};
use super::passphrase::Source;
use super::{CommandResult, Exit, file, paths, signer, verify};
use crate::model::locate::Places;
use crate::model::{Config, Tokenizer};
use crate::num::{Digest, sha256};
use crate::transcript::Transcript;
use crate::transcript::statement::ModelManifest;
use crate::verify::trust::{self, Distrust, Role};
use document::Document;
pub(super) use reported::Reported;
use seal::Seal;

/// Arguments of `attest report`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// The transcript that the report is on.
    #[arg(required_unless_present = "check")]
    transcript: Option<PathBuf>,
    /// What `attest verify --json` printed on it.
    #[arg(long, value_name = "FILE", required_unless_present = "check", conflicts_with = "check")]
    report: Option<PathBuf>,
    /// Where to write the page.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Replace files that exist.
    #[arg(long)]
    overwrite: bool,
    /// The auditor's private key: signs the report into a file beside it.
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    key: Option<PathBuf>,
    #[command(flatten)]
    passphrase: Source,
    /// Model name or folder, for the text of single tokens; its tokenizer must be the
    /// one stated.
    #[arg(long, conflicts_with = "check")]
    model: Option<String>,
    /// Check the signature of a report instead.
    #[arg(long, value_name = "REPORT")]
    check: Option<PathBuf>,
    /// The signature's file [default: the report's name with .sig].
    #[arg(long, value_name = "FILE")]
    sig: Option<PathBuf>,
    /// Trust file with the auditor's key [default: trust.toml in the configuration
    /// folder].
    #[arg(long, value_name = "FILE", requires = "check")]
    trust: Option<PathBuf>,
}

/// Makes the page, or checks a signature.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    if args.key.is_none() && args.passphrase.file().is_some() {
        return Err(Failure::new(Exit::Usage, "--passphrase-file is for the key of --key"));
    }
    match (&args.check, &args.transcript, &args.report) {
        (Some(report), transcript, _) => check(args, report, transcript.as_deref(), output),
        (None, Some(transcript), Some(report)) => make(args, transcript, report, output),
        (None, _, _) => Err(Failure::new(Exit::Usage, "a transcript and its report are needed")),
    }
}

fn make(args: &Args, transcript_path: &Path, report: &Path, output: &Output) -> CommandResult {
    let bytes = paths::read(report)?;
    let (document, file_sha256) = (read(report, &bytes)?, file::sha256(transcript_path)?);
    let transcript = belonging(&document, report, transcript_path)?;
    if let Some(transcript) = &transcript {
        document.require_coverage(transcript.statement()).map_err(|why| {
            Failure::new(Exit::Usage, format!("{}: not a report: {why}", report.display()))
        })?;
    }
    let key = |path| signer::read(path, &args.passphrase, output);
    let signing = args.key.as_deref().map(|path| key(path).map(|key| (key, sig(args, report))));
    let signing = signing.transpose()?;
    let tokenizer = match (&args.model, &transcript) {
        (Some(name), Some(transcript)) => Some(tokenizer(name, &transcript.statement().model)?),
        (Some(_) | None, _) => None,
    };
    // Nothing that is read is written over, the key least of all; both places are found
    // before either is filled.
    let read = [report, transcript_path]
        .into_iter()
        .chain(args.key.as_deref())
        .chain(args.passphrase.file());
    let kept: Vec<PathBuf> = read.filter_map(|path| std::fs::canonicalize(path).ok()).collect();
    let kept: Vec<&Path> = kept.iter().map(PathBuf::as_path).collect();
    let place = |path: &Path| paths::Pending::create(path, args.overwrite, &kept);
    let pending = place(&args.out)?;
    let signature = signing.as_ref().map(|(_, path)| place(path)).transpose()?;
    if signature.as_ref().is_some_and(|signature| signature.is_at(&pending)) {
        let message = format!("{}: the page and its signature need two files", args.out.display());
        return Err(
            Failure::new(Exit::Usage, message).hint("name another file with --out or --sig")
        );
    }
    let page = page::render(&page::Source {
        document: &document,
        report_sha256: sha256(&[&bytes]),
        transcript: transcript.as_ref(),
        file_sha256,
        token_text: &|id| tokenizer.as_ref()?.decode(&[id]).ok(),
        auditor: signing.as_ref().map(|(key, path)| (key.public(), name(path))),
        at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    });
    let page = page.map_err(|error| Failure::new(Exit::Internal, error))?;
    if let (Some((key, _)), Some(place)) = (&signing, signature) {
        place.finish(&seal::seal(&bytes, key))?;
    }
    pending.finish(page.as_bytes())?;
    let signed = signing.as_ref().map(|(key, path)| (key.public().id().to_string(), path));
    let json = json!({
        "verdict": document.verdict.word(),
        "page": args.out,
        "report_sha256": sha256(&[&bytes]).to_string(),
        "signature_file": signed.as_ref().map(|(_, path)| path),
        "key_id": signed.as_ref().map(|(id, _)| id),
    });
    let mut text = format!("{} of {}", args.out.display(), document.verdict.word());
    if let Some((id, path)) = &signed {
        text.push_str(&format!("\n{} signed by key {id}", path.display()));
    }
    output.result(&json, &text);
    Ok(Exit::Success)
}

/// Whether the signature beside a report is one of a trusted auditor.
fn check(args: &Args, report: &Path, transcript: Option<&Path>, output: &Output) -> CommandResult {
    let bytes = paths::read(report)?;
    let path = sig(args, report);
    let seal = Seal::read(&paths::read(&path)?)
        .map_err(|error| Failure::new(Exit::Malformed, format!("{}: {error}", path.display())))?;
    let digest = sha256(&[&bytes]);
    let distrusted = |why: String| Failure::new(Exit::Untrusted, why);
    let (shown, id) = (report.display(), seal.envelope.key_id);
    if seal.digest != digest {
        let other = seal.digest;
        let why = format!("{shown} has SHA-256 {digest}, the signature is over {other}");
        return Err(distrusted(why));
    }
    let store = verify::trust_file(args.trust.as_deref())?.ok_or_else(|| {
        distrusted("no trust file was given".into())
            .hint("name one with --trust; the auditor's key needs an entry with role = \"auditor\"")
    })?;
    let key = store.signer(id, |key| seal.envelope.is_signed_by(key));
    let key = key.map_err(|why| distrusted(why.to_string()))?.key;
    // Only now is what the file says worth reading.
    let document = read(report, &bytes)?;
    let transcript = match transcript {
        Some(path) => belonging(&document, report, path)?,
        None => None,
    };
    let time = trust::unix_time(&document.verifier.checked_at)
        .map_err(|why| Failure::new(Exit::Usage, format!("{shown}: checked_at: {why}")))?;
    let model = transcript.as_ref().map(|transcript| &transcript.statement().model);
    let claim = trust::Claim {
        model_name: model.map_or("", |model| &model.name),
        model_digest: model.map_or(Digest([0; 32]), |model| model.digest),
        time,
        role: Role::Auditor,
    };
    let auditor = store.judge(&key, &claim).map_err(|why| match why {
        Distrust::OtherModel { name, .. } if model.is_none() => distrusted(format!(
            "the key of {name:?} is trusted for some models only; name the transcript, too"
        )),
        Distrust::OtherModel { .. }
        | Distrust::UnknownKey { .. }
        | Distrust::BadSignature { .. }
        | Distrust::Revoked { .. }
        | Distrust::WrongRole { .. }
        | Distrust::OutOfWindow { .. } => distrusted(why.to_string()),
    })?;
    let (verdict, at) = (document.verdict.word(), plain(&document.verifier.checked_at));
    let on = document.transcript.map_or("no transcript".into(), |digest| digest.to_string());
    let json = json!({
        "report_sha256": digest.to_string(), "key_id": id.to_string(), "auditor": auditor.name,
        "verdict": verdict, "transcript": document.transcript.map(|digest| digest.to_string()),
        "checked_at": document.verifier.checked_at,
    });
    let name = plain(&auditor.name);
    let text = format!(
        "signed by {name:?}, key {id}, who may sign as auditor\nthe report says {verdict} of {on}, checked at {at}"
    );
    output.result(&json, &text);
    Ok(Exit::Success)
}

fn read(path: &Path, bytes: &[u8]) -> Result<Document, Failure> {
    Document::read(bytes).map_err(|why| {
        Failure::new(Exit::Usage, format!("{}: not a report: {why}", path.display()))
            .hint("`attest verify --json` on one transcript prints one")
    })
}

/// The transcript of a file, required to be the one that the report is on.
fn belonging(
    document: &Document,
    report: &Path,
    path: &Path,
) -> Result<Option<Transcript>, Failure> {
    let (report, shown) = (report.display(), path.display());
    let refuse = |why: String| Err(Failure::new(Exit::Usage, why));
    match (file::input(path)?.read(), document.transcript) {
        (Ok(transcript), Some(expected)) if transcript.digest() == expected => Ok(Some(transcript)),
        (Ok(transcript), Some(expected)) => {
            let found = transcript.digest();
            refuse(format!("{report} is on transcript {expected}, {shown} is {found}"))
        }
        (Ok(_), None) => {
            refuse(format!("{report} is on a file that is no transcript, {shown} is one"))
        }
        (Err(_), None) => Ok(None),
        (Err(error), Some(expected)) => {
            refuse(format!("{report} is on transcript {expected}, {shown} is none: {error}"))
        }
    }
}

/// Where the signature of a report is.
fn sig(args: &Args, report: &Path) -> PathBuf {
    args.sig.clone().unwrap_or_else(|| {
        let mut name = report.as_os_str().to_owned();
        name.push(".sig");
        name.into()
    })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The tokenizer of the model, whose files must be those of the manifest.
fn tokenizer(name: &str, stated: &ModelManifest) -> Result<Tokenizer, Failure> {
    let folder = Places::from_env().resolve(name)?;
    let file = |name: &str| {
        let path = folder.join(name);
        let bytes = paths::read(&path)?;
        let (expected, found) = (stated.file(name).map(|file| file.sha256), sha256(&[&bytes]));
        if expected == Some(found) {
            return Ok(bytes);
        }
        let expected = expected.map_or("no such file".into(), |digest| digest.to_string());
        let message = format!("{} has SHA-256 {found}, expected {expected}", path.display());
        Err(Failure::new(Exit::Incomplete, message))
    };
    let config = Config::from_json(&file("config.json")?)?;
    Ok(Tokenizer::from_json(&file("tokenizer.json")?, config.vocab_size)?)
}
