//! `attest custody check`: signatures, chain, head.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::json;

use super::{authenticate, read};
use crate::cli::error::Failure;
use crate::cli::output::{Output, plain};
use crate::cli::{CommandResult, Exit, verify};
use crate::num::Digest;
use crate::verify::trust::rfc3339;

/// Arguments of `attest custody check`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// The log.
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// Trust file with the signers' keys, of any role [default: trust.toml in the
    /// configuration folder].
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// A head that the log had earlier. Only this shows that entries at the end are gone,
    /// or that signers wrote the log anew.
    #[arg(long, value_name = "HEX", value_parser = digest)]
    head: Option<Digest>,
}

fn digest(text: &str) -> Result<Digest, &'static str> {
    Digest::from_hex(text).ok_or("not a SHA-256 in hex")
}

/// Checks a log and prints its head.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let (path, log) = (&args.log, read(&args.log)?);
    let store = verify::trust_file(args.trust.as_deref())?.ok_or_else(|| {
        Failure::new(Exit::Untrusted, "no trust file was given")
            .hint("name one with --trust; the auditor's key needs an entry with role = \"auditor\"")
    })?;
    let names = authenticate(path, &log, &store)?;
    let earlier = args.head.map(|head| log.number_of(head).ok_or(head)).transpose();
    let earlier = earlier.map_err(|head| {
        let message = format!(
            "{}: no entry has the digest {head}: entries are gone or were written anew, or the \
             head is another log's",
            path.display()
        );
        Failure::new(Exit::Mismatch, message)
    })?;
    let (entries, count) = (log.entries(), log.entries().len());
    let (Some(first), Some(last), Some(head)) = (entries.first(), entries.last(), log.head())
    else {
        return Err(Failure::new(Exit::Internal, "a log that was read has an entry"));
    };
    let (first, last) = (rfc3339(first.entry.time), rfc3339(last.entry.time));
    let mut signers: BTreeMap<&str, u64> = BTreeMap::new();
    for name in names {
        *signers.entry(name).or_default() += 1;
    }
    let json = json!({
        "log_file": path,
        "entries": count,
        "first_at": first,
        "last_at": last,
        "signers": signers,
        "earlier_head_at": earlier,
        "head": head.to_string(),
    });
    let signed: Vec<String> =
        signers.iter().map(|(name, entries)| format!("{:?} {entries}", plain(name))).collect();
    let earlier = match earlier {
        Some(number) => format!("the head given is entry {number} of {count}"),
        None => "no earlier head was given: entries missing at the end would not show".into(),
    };
    let text = format!(
        "{count} entries, {first} to {last}, one chain\nsigned by    {}\nearlier head {earlier}\n\
         head         {head}",
        signed.join(", ")
    );
    output.result(&json, &text);
    Ok(Exit::Success)
}
