//! `attest bench forward`.

use std::fmt::Write as _;

use clap::{Args as ClapArgs, ValueEnum};

use super::{Basis, CommandResult, Output, form, print};
use crate::bench::{ForwardReport, ForwardRequest, Logits, Machine, forward};
use crate::cli::digests::digested;
use crate::model::Content;
use crate::model::locate::Places;

/// Arguments of `attest bench forward`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Model name or folder. What the weights are changes no cost.
    #[arg(long)]
    model: String,
    /// Tokens of the prompt; the ids are a fixed sequence.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    prompt_tokens: u32,
    /// Tokens generated after it; their passes run together, as a verifier's do.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    generate: u32,
    /// Which positions have logits.
    #[arg(long, value_enum, default_value_t = Positions::Last)]
    logits: Positions,
    /// Form of the lanes [default: the widest].
    #[arg(long, value_name = "FORM")]
    simd: Option<String>,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum Positions {
    /// Those that choose a token.
    Last,
    /// Every position: a pass a token from the first on.
    All,
}

pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let simd = form(args.simd.as_deref())?;
    // Opening hashes the weights, so they are in the page cache where it is large enough.
    let folder = Places::from_env().resolve(&args.model)?;
    let model = digested(Content::open(&folder)?, output)?;
    let mma = Basis::general()?.mma;
    let request = ForwardRequest {
        model: &model,
        mma: &mma,
        simd,
        prompt_tokens: args.prompt_tokens as usize,
        generated: args.generate as usize,
        logits: match args.logits {
            Positions::Last => Logits::Last,
            Positions::All => Logits::All,
        },
    };
    let machine = Machine::detect();
    let mut progress = output.progress("measuring");
    let report = forward(&request, &mut |done, total| progress.update(done, total))?;
    drop(progress);
    print(output, "forward", &machine, &report, &table(&report))
}

fn table(report: &ForwardReport) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{}, {} layers, {}: {} prompt tokens, {} generated, {} rows of logits",
        report.model,
        report.layers,
        report.simd,
        report.prompt_tokens,
        report.generated,
        report.logits_rows
    );
    let _ = writeln!(
        text,
        "checked: {} outputs of {} steps against the scalar text, 0 bits differ (time not counted)",
        report.checked_outputs, report.checked_steps
    );
    let _ = writeln!(
        text,
        "{} s for {} positions, {} s each; {} multiply-adds, {} GMAC/s",
        report.seconds,
        report.positions,
        report.seconds_per_position,
        report.multiply_adds,
        report.gmac_per_s
    );
    if let Some(memory) = report.memory {
        let mib = |bytes: u64| bytes >> 20;
        let _ = writeln!(
            text,
            "anonymous memory (no mapped file): {} MiB at the peak of samples every 10 ms, {} before; mapped files {} MiB",
            mib(memory.anonymous_peak),
            mib(memory.anonymous_before),
            mib(memory.mapped_files)
        );
    }
    let _ = writeln!(
        text,
        "\n  {:<24} {:>10} {:>8} {:>10} {:>8}",
        "operation", "seconds", "share", "executions", "GMAC/s"
    );
    for operation in &report.operations {
        let rate = match operation.multiply_adds {
            0 => String::new(),
            _ => operation.gmac_per_s.to_string(),
        };
        let _ = writeln!(
            text,
            "  {:<24} {:>10} {:>8.4} {:>10} {:>8}",
            operation.operation, operation.seconds, operation.share, operation.executions, rate
        );
    }
    text
}
