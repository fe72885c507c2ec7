//! `attest bench hash`.

use clap::Args as ClapArgs;

use super::{CommandResult, Effort, Output, ROUNDS, pair, print};
use crate::bench::{Machine, hash};

/// Arguments of `attest bench hash`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// MiB to digest in a round.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=16384))]
    mib: u32,
    #[command(flatten)]
    effort: Effort,
}

pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let machine = Machine::detect();
    let report = hash((args.mib as usize) << 20, args.effort.budget(ROUNDS))?;
    let text = format!(
        "SHA-256 of {} MiB in {} parts, GB/s, best of {} rounds (median)\n  \
         one core {}, all cores {}, {:.2} times one\n  \
         checked: two examples of the standard; all cores against one",
        args.mib,
        report.parts,
        report.rounds,
        pair(report.one_core_gb_per_s),
        pair(report.all_cores_gb_per_s),
        report.scaling.best
    );
    print(output, "hash", &machine, &report, &text)
}
