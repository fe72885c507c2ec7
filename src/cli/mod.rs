//! The command tree. Everything that touches files, the environment or the
//! terminal is here; verdicts are made in `verify`.

mod allocator;
mod basis;
mod bench;
mod catalog;
mod challenge;
mod conformance;
mod countersign;
mod custody;
mod diff;
mod digests;
mod doctor;
mod dry_run;
mod error;
mod export;
mod fault;
mod file;
#[cfg(feature = "cuda")]
mod gpu;
#[cfg(not(feature = "cuda"))]
#[path = "no_gpu.rs"]
mod gpu;
mod inspect;
mod keygen;
mod model;
mod open;
mod output;
mod passphrase;
mod paths;
mod plan;
mod produce;
mod progress;
mod quantity;
mod report;
mod run;
mod selfcheck;
mod signer;
mod trust;
mod usage;
mod verify;
mod written;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};

use error::{Exit, Failure};
use output::Output;

/// Verifiable AI inference, bit for bit.
#[derive(Parser, Debug)]
#[command(name = "attest", version, propagate_version = true, after_help = EXIT_CODES)]
struct Cli {
    /// Print one JSON value on stdout.
    #[arg(long, global = true)]
    json: bool,
    /// Print nothing; the exit code tells.
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Threads of the emulator [default: all cores]; the bits do not depend on it.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make a signing key.
    Keygen(keygen::Args),
    /// Show a trust file, or make entries of one from another tool's.
    Trust(trust::Args),
    /// Run a model on a prompt and write a signed transcript.
    Run(run::Args),
    /// Draw the cells of a transcript that its prover is to open.
    Challenge(challenge::Args),
    /// Open the cells of a challenge, from the file that `run` kept.
    Open(open::Args),
    /// Re-execute a transcript on this CPU and compare every bit.
    Verify(verify::Args),
    /// Make the page that an auditor files, from a transcript and the report on it.
    Report(report::Args),
    /// Sign as an auditor what a report says of a transcript, or check such signatures.
    Countersign(countersign::Args),
    /// Keep a log of who did what with transcripts.
    Custody(custody::Args),
    /// Print what a transcript states, without checking it.
    Inspect(inspect::Args),
    /// Compare what two transcripts state, claim by claim; needs no model and checks nothing.
    Diff(diff::Args),
    /// Copy a transcript's claims into a signed envelope that other tools read, or check one.
    Export(export::Args),
    /// Print the plan of a forward pass: every step and its recipe.
    Plan(plan::Args),
    /// Make a model folder.
    Model(model::Args),
    /// Show, measure or check dispatch catalogues.
    Catalog(catalog::Args),
    /// Say what this machine can run and verify.
    Doctor(doctor::Args),
    /// Run tensor-core vector files through the model of the arithmetic.
    Conformance(conformance::Args),
    /// Measure how fast this machine re-executes, after checking its bits.
    Bench(bench::Args),
}

/// Parses the command line, runs it, and returns the exit code.
///
/// A panic in a command ends in one sentence and exit code 70.
pub fn main() -> ExitCode {
    allocator::keep_freed_memory();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::refused(&error),
    };
    fault::install();
    if cli.json && cli.quiet {
        // clap sees no conflict between options given at different levels.
        let sentence = "--json and --quiet exclude each other";
        return usage::refused(&Cli::command().error(ErrorKind::ArgumentConflict, sentence));
    }
    let output = Output::new(cli.json, cli.quiet);
    if let Some(threads) = cli.threads {
        // Fails only if a pool exists already, and nothing ran before this line.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global();
    }
    let result = fault::guarded(|| match &cli.command {
        Command::Keygen(args) => keygen::run(args, &output),
        Command::Trust(args) => trust::run(args, &output),
        Command::Run(args) => run::run(args, &output),
        Command::Challenge(args) => challenge::run(args, &output),
        Command::Open(args) => open::run(args, &output),
        Command::Verify(args) => verify::run(args, &output),
        Command::Report(args) => report::run(args, &output),
        Command::Countersign(args) => countersign::run(args, &output),
        Command::Custody(args) => custody::run(args, &output),
        Command::Inspect(args) => inspect::run(args, &output),
        Command::Diff(args) => diff::run(args, &output),
        Command::Export(args) => export::run(args, &output),
        Command::Plan(args) => plan::run(args, &output),
        Command::Model(args) => model::run(args, &output),
        Command::Catalog(args) => catalog::run(args, &output),
        Command::Doctor(args) => doctor::run(args, &output),
        Command::Conformance(args) => conformance::run(args, &output),
        Command::Bench(args) => bench::run(args, &output),
    });
    let exit = result.unwrap_or_else(|failure: Failure| {
        output.failure(&failure);
        failure.exit
    });
    if let Some(reason) = output.lost() {
        output.note(&format!("error: the result could not be printed: {reason}"));
        // Whatever was found, nobody was told.
        return ExitCode::from(Exit::Usage.code());
    }
    ExitCode::from(exit.code())
}

type CommandResult = Result<Exit, Failure>;

const EXIT_CODES: &str = "\
Exit codes:
  0   done, or VERIFIED
  1   MISMATCH: an authentic transcript whose re-execution differs; vectors, the two
      transcripts of diff, or the two runs of run --selfcheck, that differ; a custody
      log without the head asked for
  2   usage: the command line, or a file named on it, cannot be used
  3   UNTRUSTED: signature bad, key not trusted, or no trust file
  4   MALFORMED: not a valid transcript or model file
  5   INCOMPLETE: cannot be decided here; something is missing or not known
  6   PARTIAL: what was drawn is exact, but not everything was drawn
  70  a fault of this program";
