//! `attest bench attention`.

use std::fmt::Write as _;

use clap::Args as ClapArgs;

use super::{CommandResult, Effort, Output, basis, form, pair, print};
use crate::bench::{AttentionReport, AttentionRequest, Heads, Machine, attention};

/// Arguments of `attest bench attention`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Keys that the last row sees; may be repeated [default: 250, 1000 and 4000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    length: Vec<u32>,
    /// Query heads of 128 elements; key/value heads are a quarter of them.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = query_heads)]
    heads: usize,
    /// Profile of the arithmetic.
    #[arg(long, value_name = "ID", default_value = basis::PROFILE)]
    profile: String,
    /// Form of the lanes [default: the widest].
    #[arg(long, value_name = "FORM")]
    simd: Option<String>,
    #[command(flatten)]
    effort: Effort,
}

fn query_heads(text: &str) -> Result<usize, String> {
    let heads: usize = text.parse().map_err(|_| "not a number".to_owned())?;
    let possible = (4..=256).contains(&heads) && heads.is_multiple_of(4);
    if possible { Ok(heads) } else { Err("not a multiple of 4 from 4 to 256".into()) }
}

pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let lengths = if args.length.is_empty() { &[250, 1000, 4000][..] } else { &args.length };
    let request = AttentionRequest {
        profile: args.profile.clone(),
        lengths: lengths.iter().map(|&length| length as usize).collect(),
        heads: Heads { query: args.heads, key_value: args.heads / 4 },
        simd: form(args.simd.as_deref())?,
        // A long prompt takes seconds a layer.
        budget: args.effort.budget(1),
    };
    let machine = Machine::detect();
    let report = attention(&request)?;
    print(output, "attention", &machine, &report, &table(&report))
}

fn table(report: &AttentionReport) -> String {
    let mut text = String::new();
    let Heads { query, key_value } = report.heads;
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "one layer, {query} query and {key_value} key/value heads of 128, {}, {}; best of the rounds (median)",
        report.profile, report.simd
    );
    let _ = writeln!(
        text,
        "  {:>6} {:>6} {:>7} {:>18} {:>17} {:>17} {:>10}",
        "keys", "rows", "rounds", "one core s", "GMAC/s", "all cores", "times one"
    );
    for length in &report.lengths {
        let _ = writeln!(
            text,
            "  {:>6} {:>6} {:>7} {:>18} {:>17} {:>17} {:>10.2}",
            length.length,
            length.rows,
            length.rounds,
            pair(length.one_core_seconds),
            pair(length.one_core_gmac_per_s),
            pair(length.all_cores_gmac_per_s),
            length.scaling.best
        );
    }
    let heads = report.lengths.first().map_or(0, |length| length.compared_with_scalar_text);
    let _ = write!(
        text,
        "  checked: {heads} heads of rows of each against the scalar text, all cores against one in full"
    );
    text
}
