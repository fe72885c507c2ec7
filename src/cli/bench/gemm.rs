//! `attest bench gemm`.

use std::fmt::Write as _;

use clap::{Args as ClapArgs, ValueEnum};

use super::{CommandResult, Effort, Output, ROUNDS, forms, pair, print};
use crate::bench::{GemmReport, GemmRequest, Machine, Shape, gemm};
use crate::isa::mma::Simd;

/// Arguments of `attest bench gemm`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Profile of the arithmetic; may be repeated [default: h200 and a100].
    #[arg(long, value_name = "ID")]
    profile: Vec<String>,
    /// Rows, columns and depth; may be repeated [default: 256x2560x2560].
    #[arg(long, value_name = "MxNxK")]
    shape: Vec<String>,
    /// A set of shapes: `all` has one row to 1024, and the long and wide products
    /// of Qwen3-4B.
    #[arg(long, value_name = "SET", conflicts_with = "shape")]
    shapes: Option<Set>,
    /// One form of the lanes [default: all that run here but `portable`; for a set, the widest].
    #[arg(long, value_name = "FORM")]
    simd: Option<String>,
    #[command(flatten)]
    effort: Effort,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum Set {
    All,
}

pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let mut request = GemmRequest {
        profiles: args.profile.clone(),
        shapes: args.shape.iter().map(|shape| shape.parse()).collect::<Result<_, _>>()?,
        forms: forms(args.simd.as_deref())?,
        budget: args.effort.budget(ROUNDS),
    };
    if request.profiles.is_empty() {
        request.profiles = ["h200", "a100"].map(str::to_owned).to_vec();
    }
    match args.shapes {
        Some(Set::All) => {
            request.shapes = Shape::ALL.to_vec();
            if args.simd.is_none() {
                request.forms = vec![Simd::detect()];
            }
        }
        None if request.shapes.is_empty() => request.shapes = vec![Shape::DEFAULT],
        None => {}
    }
    let machine = Machine::detect();
    let report = gemm(&request)?;
    print(output, "gemm", &machine, &report, &table(&report))
}

fn table(report: &GemmReport) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "GMAC/s, best of the rounds (median); {} on one core takes turns with them",
        report.yardstick
    );
    for shape in &report.shapes {
        let _ = writeln!(text, "\n{}", shape.shape);
        let _ = writeln!(
            text,
            "  {:<8} {:<8} {:>15} {:>16} {:>15} {:>15} {:>8}",
            "form", "profile", "one core", "of sgemm", "all cores", "times one", "A Ge/s"
        );
        for form in &shape.forms {
            for profile in &form.profiles {
                let (ratio, scaling) = (profile.ratio_to_sgemm, profile.scaling);
                let _ = writeln!(
                    text,
                    "  {:<8} {:<8} {:>15} {:>16} {:>15} {:>15} {:>8}",
                    form.simd,
                    profile.profile,
                    pair(profile.one_core_gmac_per_s),
                    pair(ratio),
                    pair(profile.all_cores_gmac_per_s),
                    format!("{:.2} ({:.2})", scaling.best, scaling.median),
                    profile.decode_gelem_per_s.best,
                );
            }
            let _ = write!(
                text,
                "  {:<8} {:<8} {:>15} in {} rounds",
                form.simd,
                "sgemm",
                pair(form.sgemm_gmac_per_s),
                form.rounds
            );
            if let Some(ratio) = form.ampere_to_hopper {
                let _ = write!(text, "; a100 over h200 {}", pair(ratio));
            }
            text.push('\n');
        }
        if let Some(profile) = shape.forms.first().and_then(|form| form.profiles.first()) {
            let _ = writeln!(
                text,
                "  checked: {} outputs of each against the scalar text ({} GMAC/s), the forms against each other in full",
                profile.compared_with_scalar_text, profile.scalar_text_gmac_per_s
            );
        }
    }
    text
}
