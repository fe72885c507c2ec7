//! `attest bench mufu`.

use std::fmt::Write as _;

use clap::Args as ClapArgs;

use super::{CommandResult, Effort, Output, ROUNDS, forms, pair, print};
use crate::bench::{Machine, MufuReport, mufu};

/// Arguments of `attest bench mufu`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Values of each function in a round.
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..))]
    values: u32,
    /// One form of the slices [default: all that run here but `portable`].
    #[arg(long, value_name = "FORM")]
    simd: Option<String>,
    #[command(flatten)]
    effort: Effort,
}

pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let forms = forms(args.simd.as_deref())?;
    let machine = Machine::detect();
    let report = mufu(args.values as usize, &forms, args.effort.budget(ROUNDS))?;
    print(output, "mufu", &machine, &report, &table(&report))
}

fn table(report: &MufuReport) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "nanoseconds a value on one core, best of {} rounds (median); {} values, {} of them any bit pattern",
        report.rounds, report.values, report.any_pattern
    );
    for function in &report.functions {
        let scalar = pair(function.scalar_ns_per_value);
        let _ = write!(text, "  {:<13} scalar text {scalar:<15}", function.function);
        for slice in &function.slices {
            let _ = write!(
                text,
                "  {} {}, {} times as fast",
                slice.simd,
                pair(slice.ns_per_value),
                slice.times_scalar.best
            );
        }
        text.push('\n');
    }
    text + "  checked: every value of every slice against the scalar text"
}
