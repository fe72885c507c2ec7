//! `attest model`: folders of models.

mod digest;
mod pending;
mod synth;

use clap::{Args as ClapArgs, Subcommand};

use super::CommandResult;
use super::output::Output;

/// Arguments of `attest model`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Print the digests that identify a model folder: the OpenSSF Model Signing root and
    /// the manifest's.
    Digest(digest::Args),
    /// Write a stand-in checkpoint of a published shape, made from a seed.
    Synth(synth::Args),
}

/// Does what is asked.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    match &args.action {
        Action::Digest(args) => digest::run(args, output),
        Action::Synth(args) => synth::run(args, output),
    }
}
