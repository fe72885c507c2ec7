//! `attest bench`: how fast this machine re-executes, after checking that it
//! computes the right bits.

mod attention;
mod forward;
mod gemm;
mod hash;
mod mufu;

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use super::basis::{self, Basis};
use super::error::Failure;
use super::output::Output;
use super::{CommandResult, Exit};
use crate::bench::{BenchError, Budget, Figures, Machine};
use crate::isa::mma::Simd;

/// Arguments of `attest bench`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Matrix products: GMAC/s on one core and on all, beside a binary32 product.
    Gemm(gemm::Args),
    /// Attention of one layer, for a prompt's rows and for one row.
    Attention(attention::Args),
    /// Special functions, one value at a time and over slices: nanoseconds a value.
    Mufu(mufu::Args),
    /// A whole forward pass of a model: time by kind of operation, and memory.
    Forward(forward::Args),
    /// SHA-256, which digests the weights: GB/s on one core and on all.
    Hash(hash::Args),
}

/// Options of every measurement that is repeated.
#[derive(ClapArgs, Clone, Copy, Debug)]
struct Effort {
    /// Measure for at least this long (each shape or length).
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    seconds: u32,
    /// Make at least this many rounds [default: 3; of attention, 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
}

impl Effort {
    fn budget(self, rounds: u32) -> Budget {
        let rounds = self.rounds.unwrap_or(rounds) as usize;
        Budget { rounds, time: Duration::from_secs(self.seconds.into()) }
    }
}

/// Rounds of a measurement that takes a second or so.
const ROUNDS: u32 = 3;

/// Checks, measures and prints.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    match &args.what {
        What::Gemm(args) => gemm::run(args, output),
        What::Attention(args) => attention::run(args, output),
        What::Mufu(args) => mufu::run(args, output),
        What::Forward(args) => forward::run(args, output),
        What::Hash(args) => hash::run(args, output),
    }
}

/// The form named, or the widest.
fn form(name: Option<&str>) -> Result<Simd, Failure> {
    match name {
        Some(_) => Ok(forms(name)?[0]),
        None => Ok(Simd::detect()),
    }
}

/// Best figure, median in parentheses.
fn pair(figures: Figures) -> String {
    format!("{} ({})", figures.best, figures.median)
}

/// Prints a report: the machine, then what was measured.
fn print(
    output: &Output,
    name: &str,
    machine: &Machine,
    report: &impl Serialize,
    text: &str,
) -> CommandResult {
    let report = serde_json::to_value(report)
        .map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
    let mut json = json!({
        "schema": format!("attest-bench-{name}/1"),
        "attest": env!("CARGO_PKG_VERSION"),
        "machine": machine,
    });
    if let (Some(json), Value::Object(report)) = (json.as_object_mut(), report) {
        json.extend(report);
    }
    output.result(&json, &format!("{machine}\n{text}"));
    Ok(Exit::Success)
}

/// Forms by name: one, or all that run here but the portable one where there is a
/// wider: it would take most of the time and nobody uses it.
fn forms(name: Option<&str>) -> Result<Vec<Simd>, Failure> {
    let all = Simd::available();
    let Some(name) = name else {
        return Ok(if all.len() > 1 { all[1..].to_vec() } else { all });
    };
    let found: Vec<Simd> = all.iter().copied().filter(|simd| simd.name() == name).collect();
    if found.is_empty() {
        let names: Vec<_> = all.iter().map(|simd| simd.name()).collect();
        let message = format!("the form {name} does not run here; {} do", names.join(", "));
        return Err(Failure::new(Exit::Usage, message));
    }
    Ok(found)
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        let exit = match error {
            BenchError::Differs { .. } | BenchError::Step { .. } | BenchError::Recipe(_) => {
                Exit::Internal
            }
            BenchError::Profile { .. } | BenchError::Shape { .. } => Exit::Usage,
            BenchError::Threads { .. } => Exit::Incomplete,
            BenchError::Generate(error) => return error.into(),
            BenchError::Engine(error) => return error.into(),
        };
        Self::new(exit, error.to_string())
    }
}
