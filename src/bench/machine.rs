//! The machine that a measurement was made on.

use serde::Serialize;

use super::{Decimal, quotient};
use crate::isa::mma::Simd;

/// Facts that a rate means nothing without.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Machine {
    /// The processor's name for itself, or "unknown".
    pub cpu: String,
    /// Those of its features that a form of ours, or one not written yet, could use.
    pub features: Vec<String>,
    /// Processors that this process may use (count).
    pub processors: usize,
    /// Threads of "all cores" (count).
    pub threads: usize,
    /// The widest form that runs here.
    pub simd: &'static str,
    /// Processes that ran or waited, averaged over the last minute, before the
    /// measurement, with two places; other work shows here.
    pub load: Option<Decimal>,
}

impl Machine {
    /// Looks at the running machine. Processor and load are known on Linux only.
    pub fn detect() -> Self {
        let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let load = std::fs::read_to_string("/proc/loadavg").ok();
        Self {
            cpu: entry(&facts, "model name").unwrap_or("unknown").to_owned(),
            features: features(&facts),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            threads: rayon::current_num_threads(),
            simd: Simd::detect().name(),
            load: load.and_then(|load| first_number(&load)),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cpu, features, processors, threads, simd, load } = self;
        write!(f, "{cpu}, {processors} processors, {threads} threads, {simd}")?;
        match load {
            Some(load) => write!(f, "; load {load:.2}")?,
            None => f.write_str("; load unknown")?,
        }
        write!(f, "; features {}", features.join(" "))
    }
}

/// The value of the first line `name : value`.
fn entry<'a>(facts: &'a str, name: &str) -> Option<&'a str> {
    let line = facts.lines().find(|line| line.split(':').next().map(str::trim) == Some(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

/// The first word, a decimal with a point.
fn first_number(text: &str) -> Option<Decimal> {
    let (whole, places) = text.split_whitespace().next()?.split_once('.')?;
    let unit = 10u64.checked_pow(u32::try_from(places.len()).ok()?)?;
    Some(quotient(format!("{whole}{places}").parse().ok()?, unit))
}

fn features(facts: &str) -> Vec<String> {
    // `flags` on x86, `Features` on Arm.
    let all = entry(facts, "flags").or_else(|| entry(facts, "Features")).unwrap_or_default();
    let has = |name: &&&str| all.split_whitespace().any(|flag| flag == **name);
    FEATURES.iter().filter(has).map(|&name| name.to_owned()).collect()
}

/// Names as Linux spells them.
const FEATURES: [&str; 19] = [
    "sse4_2",
    "sha_ni",
    "f16c",
    "fma",
    "avx2",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
    "asimd",
    "bf16",
    "sve",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_their_lines() {
        let facts =
            "processor : 0\nmodel name\t: A Processor: new\nflags\t\t: fpu fma avx2 avx512\n";
        assert_eq!(entry(facts, "model name"), Some("A Processor: new"));
        assert_eq!(features(facts), ["fma", "avx2"], "whole words only");
        assert_eq!(entry("", "model name"), None);
    }

    #[test]
    fn the_load_is_the_first_number() {
        let shown = |text: &str| first_number(text).map(|load| format!("{load:.2}"));
        assert_eq!(shown("13.16 9.20 4.07 3/412 81\n").as_deref(), Some("13.16"));
        assert_eq!(shown("0.05 0.01 0.00 1/99 7\n").as_deref(), Some("0.05"));
        for text in ["", "none", "-1.00 2.00", "99999999999999999999.00"] {
            assert_eq!(shown(text), None, "{text}");
        }
    }
}
