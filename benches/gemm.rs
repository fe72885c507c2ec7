//! The short form of `attest bench gemm`: the widest form at a size that takes a
//! few seconds, checked before it is timed.
//!
//! `cargo bench --bench gemm`; anything else is an option of the command.
#![allow(clippy::unwrap_used, clippy::panic)] // a fault is its report

use std::time::Duration;

use attest::bench::{Budget, GemmRequest, Machine, gemm};
use attest::isa::mma::Simd;

fn main() {
    let report = gemm(&GemmRequest {
        profiles: ["h200", "a100"].map(str::to_owned).to_vec(),
        shapes: vec!["64x256x2560".parse().unwrap()],
        forms: vec![Simd::detect()],
        budget: Budget { rounds: 20, time: Duration::from_secs(1) },
    });
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    println!("{}", Machine::detect());
    for form in report.shapes.into_iter().flat_map(|shape| shape.forms) {
        println!("{}: sgemm {} GMAC/s", form.simd, form.sgemm_gmac_per_s.best);
        for profile in form.profiles {
            println!(
                "  {}: {} GMAC/s on one core, {:.4} of sgemm; {} on all cores",
                profile.profile,
                profile.one_core_gmac_per_s.best,
                profile.ratio_to_sgemm.median,
                profile.all_cores_gmac_per_s.best
            );
        }
    }
}
