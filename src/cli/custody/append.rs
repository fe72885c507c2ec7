//! `attest custody append`: one more entry, after the whole log was checked.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use serde_json::json;

use super::{authenticate, held, parse};
use crate::cli::countersign::{now, tool};
use crate::cli::error::Failure;
use crate::cli::output::{Output, plain};
use crate::cli::passphrase::Source;
use crate::cli::report::Reported;
use crate::cli::{CommandResult, Exit, file, paths, signer, verify};
use crate::num::{Digest, sha256};
use crate::transcript::custody::{Action, Entry, Log};
use crate::transcript::key::PrivateKey;
use crate::transcript::signed::FormVersion;
use crate::verify::tables;
use crate::verify::trust::{TrustStore, rfc3339};

/// Arguments of `attest custody append`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// The log.
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// The private key that signs the entry.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    #[command(flatten)]
    passphrase: Source,
    /// What was done.
    #[arg(long, value_enum)]
    action: Done,
    /// The transcript that it was done with.
    #[arg(long, value_name = "FILE")]
    transcript: PathBuf,
    /// What `attest verify --json` printed on it; needed for verified and countersigned.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// A remark: from whom, to whom, on which medium.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Trust file that every entry must be signed by, the new one included. Without it the
    /// chain is checked, and of the signatures only this key's own.
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

/// What was done with a transcript.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Done {
    /// It came from somebody.
    Received,
    /// It was verified.
    Verified,
    /// A counter-signature was made.
    Countersigned,
    /// It was given to somebody.
    HandedOver,
    /// Something else: see the note.
    Note,
}

impl From<Done> for Action {
    fn from(done: Done) -> Self {
        match done {
            Done::Received => Self::Received,
            Done::Verified => Self::Verified,
            Done::Countersigned => Self::Countersigned,
            Done::HandedOver => Self::HandedOver,
            Done::Note => Self::Note,
        }
    }
}

/// Appends an entry and prints the new head.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let transcript = file::transcript(&args.transcript)?;
    let reported =
        args.report.as_deref().map(|path| Reported::on(&transcript, path)).transpose()?;
    let key = signer::read(&args.key, &args.passphrase, output)?;
    let store = match &args.trust {
        Some(path) => verify::trust_file(Some(path))?,
        None => None,
    };
    let draft = |log: &Log| Entry {
        version: FormVersion,
        number: log.entries().len() as u64 + 1,
        previous: log.head(),
        time: now(),
        action: args.action.into(),
        transcript: transcript.digest(),
        verdict: reported.as_ref().map(|reported| reported.verdict.into()),
        report: reported.as_ref().map(|reported| reported.digest),
        note: args.note.clone(),
        tool: tool(),
        tables: tables::digest(),
    };
    // Before there is a log: a mistake on the command line begins none.
    let alone = draft(&Log::default());
    alone.check().map_err(|rule| Failure::new(Exit::Usage, rule))?;
    require_trusted(store.as_ref(), &key, &alone)?;
    let (entry, head) = append(&args.log, &key, store.as_ref(), draft)?;
    let id = key.public().id();
    let json = json!({
        "log_file": args.log,
        "entry": entry.number,
        "action": entry.action.word(),
        "transcript": entry.transcript.to_string(),
        "time": rfc3339(entry.time),
        "key_id": id.to_string(),
        "head": head.to_string(),
    });
    let text = format!(
        "entry {} of {}: {} transcript {}, signed by key {id}\nhead {head}",
        entry.number,
        plain(&args.log.display().to_string()),
        entry.action.word(),
        entry.transcript,
    );
    output.result(&json, &text);
    Ok(Exit::Success)
}

/// Checks the log and writes one entry behind it, while nobody else does.
fn append(
    path: &Path,
    key: &PrivateKey,
    store: Option<&TrustStore>,
    draft: impl Fn(&Log) -> Entry,
) -> Result<(Entry, Digest), Failure> {
    let failed = |error: std::io::Error| paths::failed(path, &error);
    paths::require_parent(path)?;
    let is_new = !path.exists();
    let mut file =
        OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Failure::new(Exit::Usage, format!("{}: not a plain file", path.display())));
    }
    file.lock().map_err(failed)?;
    let before = held(path, &mut file)?;
    let log = parse(path, &before)?;
    check_own(path, &log, key)?;
    // After the lock: another appender's time may be later than when this command began.
    let entry = draft(&log);
    log.check_next(&entry, before.len()).map_err(|error| {
        Failure::new(Exit::Usage, format!("{}: {error}", path.display()))
            .hint("set this machine's clock; times in the log never go back")
    })?;
    if let Some(store) = store {
        authenticate(path, &log, store)?;
    }
    require_trusted(store, key, &entry)?;
    let bytes = entry.seal(key);
    write(&mut file, &bytes, before.len() as u64).map_err(failed)?;
    if is_new {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // The name is durable, too. Not every system can sync a folder.
        let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    }
    Ok((entry, sha256(&[&bytes])))
}

/// Requires that an entry will be trusted, if that can be said.
fn require_trusted(
    store: Option<&TrustStore>,
    key: &PrivateKey,
    entry: &Entry,
) -> Result<(), Failure> {
    let Some(store) = store else { return Ok(()) };
    let judged = store.may_log(&key.public(), entry).map_err(|why| {
        Failure::new(Exit::Untrusted, format!("the new entry would not be trusted: {why}"))
    });
    judged.map(|_| ())
}

/// Requires that the entries that name this key are signed by it.
fn check_own(path: &Path, log: &Log, key: &PrivateKey) -> Result<(), Failure> {
    let public = key.public();
    let forged = log.entries().iter().find(|logged| {
        logged.envelope.key_id == public.id() && !logged.envelope.is_signed_by(&public)
    });
    match forged {
        None => Ok(()),
        Some(logged) => {
            let (path, number, id) = (path.display(), logged.entry.number, public.id());
            let message = format!("{path}: entry {number} names key {id} and is not signed by it");
            Err(Failure::new(Exit::Untrusted, message))
        }
    }
}

/// Writes in one call and to the disk; what was written of a part is taken back.
fn write(file: &mut File, bytes: &[u8], before: u64) -> std::io::Result<()> {
    let written = file.write(bytes).and_then(|count| {
        if count == bytes.len() {
            file.sync_all()
        } else {
            Err(std::io::ErrorKind::WriteZero.into())
        }
    });
    written.inspect_err(|_| {
        let _ = file.set_len(before).and_then(|()| file.sync_all());
    })
}
