//! The machine that a measurement was made on.

use serde::Serialize;

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
    /// measurement; other work shows here.
    pub load: Option<String>,
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
            load: load.and_then(|load| load.split_whitespace().next().map(str::to_owned)),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cpu, features, processors, threads, simd, load } = self;
        write!(f, "{cpu}, {processors} processors, {threads} threads, {simd}")?;
        write!(f, "; load {}", load.as_deref().unwrap_or("unknown"))?;
        write!(f, "; features {}", features.join(" "))
    }
}

/// The value of the first line `name : value`.
fn entry<'a>(facts: &'a str, name: &str) -> Option<&'a str> {
    let line = facts.lines().find(|line| line.split(':').next().map(str::trim) == Some(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
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
}
