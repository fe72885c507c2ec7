//! `attest verify --dry-run`: what a verification will cost here.

use std::fmt::Write as _;

use serde_json::json;

use super::error::Failure;
use super::output::Output;
use super::verify::{self, Args};
use super::{CommandResult, Exit, produce};
use crate::bench::{Calibration, Decimal, calibrate, per_second, quotient};
use crate::isa::mma::Simd;
use crate::model::content::Configuration;
use crate::verify::forecast::{Cost, Foreseen, Request, forecast};
use crate::verify::{Anchor, report};

/// Does the cheap checks, adds up, calibrates and prints. Nothing is verified.
pub(super) fn run(
    args: &Args,
    file: Vec<u8>,
    anchor: Anchor<'_>,
    output: &Output,
) -> CommandResult {
    let foreseen = forecast(Request {
        file,
        anchor,
        nonce: args.nonce(),
        open_config: &|manifest| Configuration::read(&verify::folder(args, manifest)?),
        threads: rayon::current_num_threads(),
    });
    let Some(cost) = foreseen.cost else {
        let verdict = foreseen.report.verdict();
        let text = format!("{}{}\n", rows(&foreseen), verdict.word());
        output.result(&document(&foreseen, None)?, &text);
        return Ok(verdict.into());
    };
    let (_, _, mma) = produce::contract()?;
    let simd = Simd::detect();
    // As many rows as most products will have, within what is computed together.
    let rates = calibrate(&mma, simd, cost.tokens.min(MOST_ROWS), cost.hidden_size);
    let estimate = Estimate { cost, rates, simd };
    let text = format!("{}{}{NOTHING}\n", rows(&foreseen), estimate.text());
    output.result(&document(&foreseen, Some(&estimate))?, &text);
    Ok(Exit::Success)
}

/// The checks that were made.
fn rows(foreseen: &Foreseen) -> String {
    let mut text = String::new();
    if let Some(transcript) = &foreseen.transcript {
        let _ = writeln!(text, "transcript   {}", transcript.digest());
    }
    for check in &foreseen.report.checks {
        let made = match &check.outcome {
            report::Outcome::NotDecided { reason } => !reason.starts_with("not reached"),
            report::Outcome::Passed { .. }
            | report::Outcome::Failed { .. }
            | report::Outcome::NotAsked { .. } => true,
        };
        if made {
            text.push_str(&verify::row(check));
        }
    }
    text
}

/// A cost in seconds of this machine.
struct Estimate {
    cost: Cost,
    rates: Calibration,
    simd: Simd,
}

impl Estimate {
    fn seconds(&self) -> Decimal {
        let nanos = self.rates.nanos(self.cost.multiply_adds(), self.cost.hashed_bytes);
        quotient(nanos, NANOS)
    }

    fn text(&self) -> String {
        let Self { cost, rates, simd } = self;
        let giga = |amount: u64| quotient(amount, GIGA);
        let mut text = String::new();
        // Writing to a String cannot fail.
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<20} {value}");
        };
        line("passes", format!("{}, {} tokens in all", cost.passes, cost.tokens));
        line(
            "multiply-adds",
            format!(
                "{:.1} G: {:.1} G with weights, {:.1} G for logits, {:.1} G in attention",
                giga(cost.multiply_adds()),
                giga(cost.linear),
                giga(cost.logits),
                giga(cost.attention)
            ),
        );
        let (hashed, read) = (giga(cost.hashed_bytes), giga(cost.read_bytes));
        line("weights", format!("{hashed:.2} GB hashed, {read:.2} GB read by products"));
        let memory = giga(cost.memory_bytes);
        line("memory", format!("about {memory:.2} GB beside the mapped weights"));
        let product = per_second(rates.multiply_adds, rates.product_nanos);
        let hash = per_second(rates.hashed_bytes, rates.hash_nanos);
        let (threads, simd) = (rates.threads, simd.name());
        line(
            "this machine",
            format!(
                "{product:.1} GMAC/s on {threads} threads ({simd}), SHA-256 {hash:.2} GB/s a \
                 thread, measured for a second just now"
            ),
        );
        line("estimate", format!("about {:.0} s, with the weights in memory", self.seconds()));
        text
    }

    fn json(&self) -> serde_json::Value {
        let Self { cost, rates, simd } = self;
        json!({
            "passes": cost.passes,
            "tokens": cost.tokens,
            "multiply_adds": {
                "linear": cost.linear,
                "logits": cost.logits,
                "attention": cost.attention,
                "all": cost.multiply_adds(),
            },
            "hashed_bytes": cost.hashed_bytes,
            "read_bytes": cost.read_bytes,
            "memory_bytes": cost.memory_bytes,
            "calibration": {
                "threads": rates.threads,
                "simd": simd.name(),
                "gmac_per_s": per_second(rates.multiply_adds, rates.product_nanos),
                "sha256_gb_per_s_per_thread": per_second(rates.hashed_bytes, rates.hash_nanos),
            },
            "estimated_seconds": self.seconds(),
        })
    }
}

fn document(
    foreseen: &Foreseen,
    estimate: Option<&Estimate>,
) -> Result<serde_json::Value, Failure> {
    let internal = |error: serde_json::Error| Failure::new(Exit::Internal, error.to_string());
    // Without an estimate a check failed, and that is a verdict.
    let verdict = estimate.is_none().then(|| foreseen.report.verdict());
    Ok(json!({
        "dry_run": true,
        "verdict": verdict.map(report::Verdict::word),
        "exit": verdict.map_or(0, report::Verdict::exit_code),
        "transcript": foreseen.transcript.as_ref().map(|t| t.digest().to_string()),
        "checks": serde_json::to_value(&foreseen.report.checks).map_err(internal)?,
        "cost": estimate.map(Estimate::json),
    }))
}

const NOTHING: &str = "nothing was verified: a dry run executes and compares nothing";
/// Rows that the emulator computes together.
const MOST_ROWS: usize = 512;
const GIGA: u64 = 1_000_000_000;
const NANOS: u64 = 1_000_000_000;
