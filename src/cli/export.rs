//! `attest export`: a transcript's claims in an envelope that other tools read, and the
//! check of such an envelope.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args as ClapArgs, ValueEnum};
use serde_json::json;

use super::error::Failure;
use super::output::{Output, plain};
use super::passphrase::Source;
use super::{CommandResult, Exit, file, paths, verify};
use crate::interop::dsse::Envelope;
use crate::interop::in_toto::{Exporter, Statement};
use crate::interop::{InteropError, NotTrusted, exporter};
use crate::verify::trust::rfc3339;

/// Arguments of `attest export`.
#[derive(ClapArgs, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The transcript to export; `-` reads it from standard input.
    #[arg(required_unless_present = "check", conflicts_with = "check")]
    transcript: Option<PathBuf>,
    /// The form of the export.
    #[arg(long, value_enum, default_value_t = Format::InToto)]
    format: Format,
    /// The exporter's private key [default: key.pem in the configuration folder].
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    key: Option<PathBuf>,
    #[command(flatten)]
    passphrase: Source,
    /// Where to write the envelope.
    #[arg(long, value_name = "FILE", required_unless_present = "check", conflicts_with = "check")]
    out: Option<PathBuf>,
    /// Replace a file that exists.
    #[arg(long, conflicts_with = "check")]
    overwrite: bool,
    /// Time of the export, seconds since 1970 [default: now].
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH", value_parser = clap::value_parser!(u64).range(..=LAST_SECOND))]
    time: Option<u64>,
    /// Check an envelope instead.
    #[arg(long, value_name = "ENVELOPE")]
    check: Option<PathBuf>,
    /// The transcript that the envelope must be of.
    #[arg(long = "transcript", value_name = "FILE", requires = "check")]
    of: Option<PathBuf>,
    /// Trust file with the exporter's key [default: trust.toml in the configuration folder].
    #[arg(long, value_name = "FILE", requires = "check")]
    trust: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
An export says that its signer copied these claims from a transcript. Neither making nor checking one
checks the transcript: that is what `attest verify` does.

Exit code of --check: 0 if a prover or auditor of the trust file signed it, 3 if not, 4 if it is no
export or does not say what the transcript states, 2 if it is of another transcript.";

/// A form of export.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// An in-toto Statement v1 in a DSSE envelope.
    InToto,
}

/// 9999-12-31T23:59:59Z.
const LAST_SECOND: u64 = 253_402_300_799;

/// Exports a transcript, or checks an export.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    if args.check.is_some() && args.passphrase.file().is_some() {
        return Err(Failure::new(Exit::Usage, "--passphrase-file is for the key of an export"));
    }
    match (args.format, &args.check, &args.transcript, &args.out) {
        (Format::InToto, Some(envelope), _, _) => check(args, envelope, output),
        (Format::InToto, None, Some(transcript), Some(out)) => make(args, transcript, out, output),
        (Format::InToto, None, _, _) => {
            Err(Failure::new(Exit::Usage, "a transcript and a place for its export are needed"))
        }
    }
}

fn make(args: &Args, path: &Path, out: &Path, output: &Output) -> CommandResult {
    let transcript = file::transcript(path)?;
    let (key, key_path) = super::run::signing_key(args.key.as_deref(), &args.passphrase, output)?;
    // Nothing that is read is written over, the key least of all.
    let kept = [path, &key_path].into_iter().chain(args.passphrase.file());
    let kept: Vec<PathBuf> = kept.filter_map(|path| std::fs::canonicalize(path).ok()).collect();
    let kept: Vec<&Path> = kept.iter().map(PathBuf::as_path).collect();
    let place = paths::Pending::create(out, args.overwrite, &kept)?;
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let exporter = Exporter {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        time: rfc3339(args.time.unwrap_or_else(now)),
    };
    let usage = |error: InteropError| Failure::new(Exit::Usage, error.to_string());
    let statement = Statement::of(&transcript, exporter).map_err(usage)?;
    let envelope = Envelope::seal(statement.to_json(), &key);
    let mut written = envelope.to_json();
    // Nothing is written that cannot be read.
    Envelope::from_json(written.as_bytes()).map_err(usage)?;
    written.push('\n');
    place.finish(written.as_bytes())?;
    let id = key.public().id().to_string();
    let digest = transcript.digest().to_string();
    let json = json!({
        "envelope_file": out, "transcript": digest, "key_id": id, "key_file": key_path,
        "transcript_checked": false,
    });
    let text = format!(
        "NOT CHECKED: an export copies what the transcript claims\ntranscript {digest}\nwritten to \
         {} ({} bytes), signed by key {id}",
        out.display(),
        written.len()
    );
    output.result(&json, &text);
    Ok(Exit::Success)
}

/// Whether an export is a trusted key's, and of the transcript at hand if there is one.
fn check(args: &Args, path: &Path, output: &Output) -> CommandResult {
    let bytes = paths::read_or_stdin(path)?;
    let shown = path.display();
    let malformed =
        |error: InteropError| Failure::new(Exit::Malformed, format!("{shown}: {error}"));
    let distrusted = |why: String| Failure::new(Exit::Untrusted, why);
    let envelope = Envelope::from_json(&bytes).map_err(malformed)?;
    let store = verify::trust_file(args.trust.as_deref())?
        .ok_or_else(|| distrusted("no trust file was given".into()).hint("name one with --trust; the exporter's key needs an entry with role = \"prover\" or \"auditor\""))?;
    let (exporter, statement) = exporter(&envelope, &store).map_err(|why| match why {
        NotTrusted::Malformed(error) => malformed(error),
        NotTrusted::Distrust(_) | NotTrusted::NoSigner { .. } | NotTrusted::Role { .. } => {
            distrusted(format!("{shown}: {why}"))
        }
    })?;
    if let Some(path) = &args.of {
        statement.belongs_to(&file::transcript(path)?).map_err(|error| match error {
            // The wrong file was named.
            InteropError::OtherTranscript { .. } => Failure::new(Exit::Usage, error.to_string()),
            InteropError::TooLong { .. }
            | InteropError::Envelope { .. }
            | InteropError::PayloadType { .. }
            | InteropError::Statement { .. }
            | InteropError::OtherType { .. }
            | InteropError::Differs { .. }
            | InteropError::Time { .. } => malformed(error),
        })?;
    }
    let (digest, id) = (statement.transcript().to_string(), exporter.key.id().to_string());
    let predicate = &statement.predicate;
    let nonce = predicate.nonce.as_ref().map(|nonce| hex::encode(&nonce.0));
    let json = json!({
        "transcript": digest, "key_id": id, "exporter": exporter.name,
        "role": exporter.role.word(), "exported_at": predicate.exporter.time, "nonce": nonce,
        "compared_with_transcript": args.of.is_some(), "transcript_checked": false,
        "statement": statement,
    });
    let compared = match &args.of {
        Some(path) => format!("it says what {} states", plain(&path.display().to_string())),
        None => "it was not compared with a transcript".to_owned(),
    };
    let text = format!(
        "NOT CHECKED: the transcript itself; `attest verify` does that\nexported by {:?}, key {id}, who may \
         sign as {}, at {} by their clock\ntranscript {digest}: {compared}\nnonce {}",
        plain(&exporter.name),
        exporter.role.word(),
        predicate.exporter.time,
        nonce.as_deref().unwrap_or("none"),
    );
    output.result(&json, &text);
    Ok(Exit::Success)
}
