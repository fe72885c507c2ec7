//! `attest model synth`: a stand-in checkpoint, made from a seed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::pending::PendingFolder;
use crate::cli::error::Failure;
use crate::cli::output::Output;
use crate::cli::progress::Status;
use crate::cli::{CommandResult, Exit, paths};
use crate::model::Tokenizer;
use crate::model::synth::{Checkpoint, Part, Written, digest, shapes};

/// Arguments of `attest model synth`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Shape of the model.
    #[arg(long, value_parser = PossibleValuesParser::new(shapes()))]
    config: String,
    /// What the weights are made from.
    #[arg(long, value_name = "N")]
    seed: u64,
    /// The folder to write, new or empty; its name is the model's in a transcript
    /// [default: CONFIG-synth-N].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A folder whose tokenizer files are copied; a model without one cannot be run.
    #[arg(long, value_name = "DIR")]
    tokenizer: Option<PathBuf>,
    /// Make only the first layers of the shape.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    layers: Option<u32>,
}

/// Writes the checkpoint and prints the digests of its files.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let layers = args.layers.map(|layers| layers as usize);
    let checkpoint = Checkpoint::new(&args.config, layers, args.seed)?
        .ok_or_else(|| Failure::new(Exit::Usage, format!("no shape is named {}", args.config)))?;
    let tokenizer = tokenizer_files(args.tokenizer.as_deref(), checkpoint.config().vocab_size)?;
    let path = args.out.clone().unwrap_or_else(|| checkpoint.name().into());
    let folder = PendingFolder::create(&path)?;
    for (name, bytes) in &tokenizer {
        folder.file(name, |file| std::io::Write::write_all(file, bytes))?;
    }
    let mut progress = output.progress("writing");
    let parts = checkpoint.parts();
    let (mut done, total) = (0, parts.iter().map(Part::len_bytes).sum());
    let mut written = Vec::new();
    for part in &parts {
        written.push(folder.file(part.name(), |file| {
            part.write(file, &mut |bytes| {
                done += bytes;
                progress.show(&Status::of_bytes(done, total));
            })
        })?);
    }
    drop(progress);
    folder.finish()?;
    report(&path, &checkpoint, &written, args.tokenizer.is_some(), output);
    Ok(Exit::Success)
}

fn report(path: &Path, made: &Checkpoint, files: &[Written], usable: bool, output: &Output) {
    let digest = digest(files);
    let json = json!({
        "folder": path, "name": made.name(), "digest": digest.to_string(),
        "files": files.iter().map(|file| json!({
            "path": file.name, "len_bytes": file.len_bytes, "sha256": file.sha256.to_string(),
        })).collect::<Vec<_>>(),
    });
    let mut text = format!("{} in {}\n", made.name(), path.display());
    for file in files {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}  {}", file.sha256, file.name);
    }
    let _ = writeln!(text, "digest {digest}");
    output.result(&json, &text);
    if !usable {
        output.note("note: without a tokenizer.json the folder cannot be run; see --tokenizer");
    }
}

/// Reads what there is of a tokenizer, and that it fits, before anything is written.
fn tokenizer_files(
    folder: Option<&Path>,
    vocabulary: usize,
) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let main = paths::read(&folder.join(TOKENIZER))?;
    Tokenizer::from_json(&main, vocabulary)?;
    let mut files = vec![(TOKENIZER, main)];
    for name in BESIDE {
        let path = folder.join(name);
        if path.exists() {
            files.push((name, paths::read(&path)?));
        }
    }
    Ok(files)
}

const TOKENIZER: &str = "tokenizer.json";

/// What published models have beside it, for other programs.
const BESIDE: [&str; 3] = ["tokenizer_config.json", "vocab.json", "merges.txt"];
