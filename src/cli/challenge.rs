//! `attest challenge`: which cells of a transcript its prover is to open.
//!
//! The nonce is drawn after the statement is fixed, so a prover cannot know which cells
//! will be looked at. The file is plain JSON; nothing in it is secret once it is sent.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use serde::{Deserialize, Serialize};

use super::error::Failure;
use super::output::{Output, plain};
use super::verify::{Nonce, parse_hex};
use super::{CommandResult, Exit, file, paths};
use crate::num::Digest;
use crate::transcript::opening::{Challenge, Draw, MAX_NONCE_LEN_BYTES};
use crate::transcript::statement::TraceMode;

/// Arguments of `attest challenge`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// The transcript, as it came from the prover.
    transcript: PathBuf,
    /// How many cells (one layer at one position) to draw. Shares of forged cells are met
    /// with a probability of 1 - (1 - share)^N: 300 meet 1% with 95%, 3000 meet 0.1%.
    #[arg(long, value_name = "N", default_value_t = 300,
          value_parser = clap::value_parser!(u64).range(1..))]
    cells: u64,
    /// What to draw from (hex, up to 64 bytes) in place of 32 random bytes: a public
    /// beacon's value, for instance. The prover must not have known it when signing.
    #[arg(long, value_name = "HEX", value_parser = parse_hex)]
    nonce: Option<Nonce>,
    /// Where to write the challenge.
    #[arg(long, value_name = "FILE", default_value = "challenge.json")]
    out: PathBuf,
    /// Replace a file that exists.
    #[arg(long)]
    overwrite: bool,
}

/// The file.
#[derive(Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct File {
    /// Version of the form: 1.
    attest_challenge: u64,
    /// Digest of the transcript, hex.
    transcript: String,
    cells: u64,
    /// Hex.
    nonce: String,
}

/// Draws a nonce and writes the challenge.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    file::require_named(&args.transcript, "a challenge")?;
    let transcript = file::transcript(&args.transcript)?;
    let statement = transcript.statement();
    match statement.trace.mode {
        TraceMode::Cells => {}
        mode @ (TraceMode::None | TraceMode::Layers | TraceMode::Steps) => {
            let message = format!(
                "{}: the trace is {}, so single cells of it cannot be opened",
                args.transcript.display(),
                mode.word()
            );
            return Err(Failure::new(Exit::Usage, message)
                .hint("ask the prover for a run with --trace cells, or verify it in full"));
        }
    }
    let nonce = match &args.nonce {
        Some(nonce) if nonce.0.len() > MAX_NONCE_LEN_BYTES => {
            let found = nonce.0.len();
            let message =
                format!("a nonce of {found} bytes, at most {MAX_NONCE_LEN_BYTES} are read");
            return Err(Failure::new(Exit::Usage, message));
        }
        Some(nonce) => nonce.0.clone(),
        None => {
            let mut drawn = vec![0; 32];
            getrandom::fill(&mut drawn).map_err(|error| {
                Failure::new(Exit::Internal, format!("the system gives no random bytes: {error}"))
            })?;
            drawn
        }
    };
    let kept = std::fs::canonicalize(&args.transcript).ok();
    let kept: Vec<&Path> = kept.iter().map(PathBuf::as_path).collect();
    let place = paths::Pending::create(&args.out, args.overwrite, &kept)?;
    let challenge = File {
        attest_challenge: 1,
        transcript: transcript.digest().to_string(),
        cells: args.cells,
        nonce: hex::encode(nonce),
    };
    let json = serde_json::to_value(&challenge)
        .map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
    place.finish(format!("{json:#}\n").as_bytes())?;
    // Three leaves a cell.
    let of = statement.trace.count / 3;
    let share = match args.cells < of {
        true => format!("{} of {of} cells", args.cells),
        false => format!("all {of} cells, which is as much work as a full check"),
    };
    let text = format!(
        "challenge for transcript {}: {share}\nwritten to {}; keep it, and send it to the prover",
        challenge.transcript,
        plain(&args.out.display().to_string())
    );
    output.result(&json, &text);
    Ok(Exit::Success)
}

/// A challenge as it was read.
pub(super) struct Asked(pub(super) Challenge);

impl Asked {
    /// The draw, required to be of this transcript.
    pub(super) fn answered_by(self, transcript: Digest, path: &Path) -> Result<Draw, Failure> {
        if self.0.transcript == transcript {
            return Ok(self.0.draw);
        }
        let other = self.0.transcript;
        let message = format!(
            "{}: the challenge is for transcript {other}, this one is {transcript}",
            path.display()
        );
        Err(Failure::new(Exit::Usage, message))
    }
}

/// Reads a challenge.
pub(super) fn read(path: &Path) -> Result<Asked, Failure> {
    let refused = |why: String| Failure::new(Exit::Usage, format!("{}: {why}", path.display()));
    let file: File = serde_json::from_slice(&paths::read(path)?)
        .map_err(|error| refused(format!("not a challenge: {error}")))?;
    if file.attest_challenge != 1 {
        return Err(refused(format!("challenge version {}, not 1", file.attest_challenge)));
    }
    let transcript = Digest::from_hex(&file.transcript);
    let transcript =
        transcript.ok_or_else(|| refused("the transcript is no SHA-256 in hex".into()))?;
    let nonce = hex::decode(&file.nonce).ok();
    let nonce = nonce.filter(|nonce| (1..=MAX_NONCE_LEN_BYTES).contains(&nonce.len()));
    let nonce = nonce.ok_or_else(|| refused("the nonce is not 1 to 64 bytes in hex".into()))?;
    if file.cells == 0 {
        return Err(refused("no cell is asked for".into()));
    }
    Ok(Asked(Challenge { transcript, draw: Draw { cells: file.cells, nonce } }))
}
