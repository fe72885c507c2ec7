//! `attest trust`: trust files, shown and made from another tool's.

mod import;
mod show;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Subcommand};

use super::CommandResult;
use super::output::Output;
use crate::verify::trust::Role;

/// Arguments of `attest trust`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Print what each key of a trust file may sign, and whether it may now.
    Show(show::Args),
    /// Make entries of a trust file from another tool's list of keys; trusts nothing by
    /// itself.
    #[command(subcommand)]
    Import(Import),
}

#[derive(Subcommand, Debug)]
enum Import {
    /// From OpenSSH's list of allowed signers (ssh-keygen(1), ALLOWED SIGNERS).
    #[command(name = "allowed_signers", alias = "allowed-signers")]
    AllowedSigners(import::Args),
}

/// Does what is asked.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    match &args.action {
        Action::Show(args) => show::run(args, output),
        Action::Import(Import::AllowedSigners(args)) => import::run(args, output),
    }
}

/// Parses the word of a role.
pub(super) fn roles() -> impl TypedValueParser<Value = Role> {
    let words = PossibleValuesParser::new(Role::ALL.map(Role::word));
    words.map(|word| Role::from_word(&word).expect("clap takes these words only"))
}
