//! `attest open`: a prover's answer to a challenge.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::basis::Basis;
use super::error::Failure;
use super::output::{Output, plain};
use super::{CommandResult, Exit, challenge, file, paths};
use crate::engine::generate::layout_in_batches;
use crate::model::content::{CONFIG, Configuration};
use crate::model::locate::Places;
use crate::num::sha256;
use crate::plan::Stack;
use crate::transcript::cells::Layout;
use crate::transcript::write::{OpenError, opened};
use crate::transcript::{Transcript, capture};

/// Arguments of `attest open`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// The file that `attest run --trace cells` kept: transcript.kept.cbor.
    kept: PathBuf,
    /// The challenge to answer.
    #[arg(long, value_name = "FILE")]
    challenge: PathBuf,
    /// Model name or folder [default: the name in the transcript]; only config.json is
    /// read.
    #[arg(long)]
    model: Option<String>,
    /// Where to write the statement with the openings.
    #[arg(long, value_name = "FILE", default_value = "opened.cbor")]
    out: PathBuf,
    /// Replace a file that exists.
    #[arg(long)]
    overwrite: bool,
}

/// Opens the cells and writes the file to send.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let kept = file::transcript(&args.kept)?;
    let draw = challenge::read(&args.challenge)?.answered_by(kept.digest(), &args.challenge)?;
    let (layout, folder) = layout(args, &kept)?;
    let read: Vec<PathBuf> = [&args.kept, &args.challenge, &folder]
        .into_iter()
        .filter_map(|path| std::fs::canonicalize(path).ok())
        .collect();
    let read: Vec<&Path> = read.iter().map(PathBuf::as_path).collect();
    let place = paths::Pending::create(&args.out, args.overwrite, &read)?;
    let mut cells = Vec::new();
    let length = place.write(|out| {
        cells = opened(&kept, &layout, &draw, out).map_err(|error| match error {
            OpenError::NotKept { reason } => {
                Failure::new(Exit::Usage, format!("{}: {reason}", args.kept.display()))
                    .hint("name the file that `attest run --trace cells` kept")
            }
            OpenError::Io(error) => paths::failed(&args.out, &error),
        })?;
        Ok(())
    })?;
    let json = serde_json::json!({
        "transcript": kept.digest().to_string(),
        "opened_file": args.out,
        "bytes": length,
        "cells": cells.len(),
        "of": layout.cells(),
    });
    let text = format!(
        "{} of {} cells of transcript {} opened\nwritten to {} ({length} bytes)",
        cells.len(),
        layout.cells(),
        kept.digest(),
        plain(&args.out.display().to_string())
    );
    output.result(&json, &text);
    Ok(Exit::Success)
}

/// The leaves of the transcript's passes, and the model's folder.
fn layout(args: &Args, kept: &Transcript) -> Result<(Layout, PathBuf), Failure> {
    let statement = kept.statement();
    let places = Places::from_env();
    let folder = match &args.model {
        Some(name) => places.resolve(name)?,
        None => places.find(&statement.model.name)?,
    };
    let Configuration { config, file } = Configuration::read(&folder)?;
    if statement.model.file(CONFIG).map(|file| file.sha256) != Some(sha256(&[file.bytes()])) {
        let message = format!("{}: {CONFIG} is not the transcript's", folder.display());
        return Err(Failure::new(Exit::Incomplete, message)
            .hint("name the folder of the model with --model FOLDER"));
    }
    let stack = Stack::by_name(&statement.stack).ok_or_else(|| {
        Failure::new(Exit::Incomplete, format!("stack {:?} is not known", statement.stack))
    })?;
    let basis = Basis::of(stack, &config)?;
    let (tokens_in, tokens_out) = (&statement.tokens_in, &statement.tokens_out);
    let batches: Vec<_> = statement.passes.iter().map(capture::stated_batch).collect();
    let (plans, _) = layout_in_batches(&config, basis.contract(), tokens_in, tokens_out, &batches)?;
    Ok((Layout::new(&plans), folder))
}
