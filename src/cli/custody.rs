//! `attest custody`: the log of who did what with transcripts.

mod append;
mod check;
mod show;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use clap::{Args as ClapArgs, Subcommand};

use super::error::Failure;
use super::output::Output;
use super::{CommandResult, Exit, paths};
use crate::transcript::custody::{CustodyError, Log};
use crate::verify::trust::TrustStore;

/// Arguments of `attest custody`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Check a log and append a signed entry to it; one that is not there is begun.
    Append(append::Args),
    /// Check every signature and the chain, and print the head.
    Check(check::Args),
    /// Print the entries; no signature is checked.
    Show(show::Args),
}

/// Runs the subcommand.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    match &args.command {
        Command::Append(args) => append::run(args, output),
        Command::Check(args) => check::run(args, output),
        Command::Show(args) => show::run(args, output),
    }
}

/// Reads a log that has entries, while nobody appends.
fn read(path: &Path) -> Result<Log, Failure> {
    let mut file = paths::open(path)?;
    file.lock_shared().map_err(|error| paths::failed(path, &error))?;
    let log = parse(path, &held(path, &mut file)?)?;
    match log.entries() {
        [] => Err(Failure::new(Exit::Malformed, format!("{}: no entry is in it", path.display()))),
        [..] => Ok(log),
    }
}

fn held(path: &Path, file: &mut File) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| paths::failed(path, &error))?;
    Ok(bytes)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Log, Failure> {
    Log::read(bytes).map_err(|error: CustodyError| {
        Failure::new(Exit::Malformed, format!("{}: {error}", path.display()))
    })
}

/// Requires that every entry is of a key that may sign it; returns the signers' names.
fn authenticate<'a>(
    path: &Path,
    log: &Log,
    store: &'a TrustStore,
) -> Result<Vec<&'a str>, Failure> {
    let judge = |logged| match store.authenticate_entry(logged) {
        Ok(key) => Ok(key.name.as_str()),
        Err(why) => {
            let message = format!("{}: entry {}: {why}", path.display(), logged.entry.number);
            Err(Failure::new(Exit::Untrusted, message))
        }
    };
    log.entries().iter().map(judge).collect()
}
