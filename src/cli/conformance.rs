//! `attest conformance`: vector files against the model of the arithmetic.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::error::Failure;
use super::output::Output;
use super::{CommandResult, Exit};
use crate::conformance::{ConformanceError, Outcome, run_paths};

/// Arguments of `attest conformance`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Vector files, or folders of `*.bin` files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

/// Runs the files and prints cases and differences per file and column.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let report = run_paths(&args.paths).map_err(|error| {
        let exit = match error {
            ConformanceError::Io { .. } | ConformanceError::Empty { .. } => Exit::Usage,
            ConformanceError::Malformed { .. } | ConformanceError::Parameter { .. } => {
                Exit::Malformed
            }
            ConformanceError::Profile(_) => Exit::Internal,
        };
        Failure::new(exit, error.to_string())
    })?;
    let mut text = String::new();
    for file in &report.files {
        let _ = writeln!(text, "{}", file.path.display());
        for column in &file.columns {
            let result = match &column.outcome {
                Outcome::Compared { profile, cases, differences, first } => {
                    let mut line = format!("{cases:>7} cases {differences:>6} differ ({profile})");
                    if let Some(first) = first {
                        let _ = write!(
                            line,
                            "; first: record {} is {} in the file, {} computed",
                            first.record, first.expected, first.computed
                        );
                    }
                    line
                }
                Outcome::NotCovered { reason } => format!("not covered: {reason}"),
            };
            let _ = writeln!(text, "  {:<72} {result}", column.label);
        }
    }
    let (cases, differences) = (report.cases(), report.differences());
    let not_covered = report.not_covered();
    let _ = write!(
        text,
        "{} files, {cases} cases, {differences} differences, {not_covered} columns not covered",
        report.files.len()
    );
    let json = serde_json::to_value(&report)
        .map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
    output.result(&json, &text);
    Ok(if differences > 0 {
        Exit::Mismatch
    } else if cases == 0 {
        Exit::Incomplete
    } else {
        Exit::Success
    })
}
