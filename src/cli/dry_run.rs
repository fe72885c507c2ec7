//! `attest verify --dry-run`: what a verification will cost here.

use std::fmt::Write as _;

use serde_json::json;

use super::basis::Basis;
use super::error::Failure;
use super::output::Output;
use super::quantity::{bytes, count, duration};
use super::verify::{self, Args};
use super::{CommandResult, Exit};
use crate::bench::{Calibration, Decimal, calibrate, per_second, quotient};
use crate::isa::mma::Simd;
use crate::model::content::Configuration;
use crate::verify::forecast::{Cost, Foreseen, Request, forecast};
use crate::verify::report::{self, Verdict};
use crate::verify::{Anchor, Input};

/// Does the cheap checks, adds up, calibrates and prints. Nothing is verified.
pub(super) fn run(args: &Args, file: Input, anchor: Anchor<'_>, output: &Output) -> CommandResult {
    let has_store = matches!(anchor, Anchor::Store(_) | Anchor::Countersigned(..));
    let foreseen = forecast(Request {
        file,
        anchor,
        nonce: args.nonce(),
        open_config: &|manifest| Configuration::read(&verify::folder(args, manifest)?),
        threads: rayon::current_num_threads(),
    });
    let estimate = foreseen.cost.map(Estimate::make).transpose()?;
    let mut text = rows(&foreseen);
    if let Some(estimate) = &estimate {
        let _ = writeln!(text, "{}{NOTHING}", estimate.text());
    }
    let verdict = decided(&foreseen);
    if let Some(verdict) = verdict {
        let _ = writeln!(text, "{}", verdict.word());
    }
    output.result(&document(&foreseen, estimate.as_ref())?, &text);
    verify::hints(args, has_store, &foreseen.report, output);
    Ok(verdict.map_or(Exit::Success, Exit::from))
}

/// The verdict that the finished checks lead to, if one of them failed: whatever an
/// execution finds, a verification cannot end better.
fn decided(foreseen: &Foreseen) -> Option<Verdict> {
    foreseen.report.failures().next().map(|_| foreseen.report.verdict())
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
            | report::Outcome::Partial { .. }
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
    /// Measures this machine for a second.
    fn make(cost: Cost) -> Result<Self, Failure> {
        let mma = Basis::general()?.mma;
        let simd = Simd::detect();
        // As many rows as most products will have, within what is computed together.
        let rates = calibrate(&mma, simd, cost.tokens.min(MOST_ROWS), cost.hidden_size);
        Ok(Self { cost, rates, simd })
    }

    fn seconds(&self) -> Decimal {
        let nanos = self.rates.nanos(self.cost.multiply_adds(), self.cost.hashed_bytes);
        quotient(nanos, NANOS)
    }

    fn text(&self) -> String {
        let Self { cost, rates, simd } = self;
        let mut text = String::new();
        // Writing to a String cannot fail.
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<20} {value}");
        };
        line("passes", format!("{}, {} tokens in all", cost.passes, cost.tokens));
        line(
            "multiply-adds",
            format!(
                "{}: {} with weights, {} for logits, {} in attention",
                count(cost.multiply_adds()),
                count(cost.linear),
                count(cost.logits),
                count(cost.attention)
            ),
        );
        let (hashed, read) = (bytes(cost.hashed_bytes), bytes(cost.read_bytes));
        line("weights", format!("{hashed} hashed, {read} read by products"));
        let memory = bytes(cost.memory_bytes);
        line("memory", format!("about {memory} beside the mapped weights"));
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
        line("estimate", format!("about {}, with the weights in memory", duration(self.seconds())));
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
    let verdict = decided(foreseen);
    Ok(json!({
        "dry_run": true,
        "verdict": verdict.map(Verdict::word),
        "exit": verdict.map_or(0, Verdict::exit_code),
        "transcript": foreseen.transcript.as_ref().map(|t| t.digest().to_string()),
        "checks": serde_json::to_value(&foreseen.report.checks).map_err(internal)?,
        "cost": estimate.map(Estimate::json),
    }))
}

const NOTHING: &str = "nothing was verified: a dry run executes and compares nothing";
/// Rows that the emulator computes together.
const MOST_ROWS: usize = 512;
const NANOS: u64 = 1_000_000_000;
