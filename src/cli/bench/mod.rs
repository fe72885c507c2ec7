//! `attest bench`: how fast this machine re-executes, after checking that it
//! computes the right bits.

mod forward;
mod gemm;

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use serde_json::{Value, json};

use super::error::Failure;
use super::output::Output;
use super::{CommandResult, Exit, produce};
use crate::bench::{BenchError, Budget, Machine};
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
    /// A whole forward pass of a model: time by kind of operation, and memory.
    Forward(forward::Args),
}

/// Options of every measurement.
#[derive(ClapArgs, Clone, Copy, Debug)]
struct Effort {
    /// Measure for at least this long (for each shape or length).
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    seconds: u32,
    /// Make at least this many rounds.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

impl Effort {
    fn budget(self) -> Budget {
        let (rounds, time) = (self.rounds as usize, Duration::from_secs(self.seconds.into()));
        Budget { rounds, time }
    }
}

/// Checks, measures and prints.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    match &args.what {
        What::Gemm(args) => gemm::run(args, output),
        What::Forward(args) => forward::run(args, output),
    }
}

/// Prints a report: the machine, then what was measured.
fn print(
    output: &Output,
    name: &str,
    machine: &Machine,
    report: Value,
    text: &str,
) -> CommandResult {
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

/// Forms by name: one, or all that run here.
fn forms(name: Option<&str>) -> Result<Vec<Simd>, Failure> {
    let all = Simd::available();
    let Some(name) = name else { return Ok(all) };
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
            BenchError::Differs { .. } | BenchError::Step { .. } => Exit::Internal,
            BenchError::Profile { .. } | BenchError::Shape { .. } => Exit::Usage,
            BenchError::Generate(error) => return error.into(),
            BenchError::Engine(error) => return error.into(),
        };
        Self::new(exit, error.to_string())
    }
}
