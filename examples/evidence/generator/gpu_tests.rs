//! The table of tests on a GPU, from the records that `tests/gpu.rs` writes.

use attest::verify::trust::rfc3339;
use serde::Deserialize;

use super::Failed;
use super::markdown::{count, table};

/// A record, as far as the tables need it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(crate) struct Run {
    pub(crate) test: String,
    pub(crate) environment: Setup,
    unix_time: u64,
    compared: u64,
    differing: u64,
    rows: Vec<Line>,
}

/// One comparison of a test.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
struct Line {
    what: String,
    compared: u64,
    differing: u64,
}

/// How much was compared, with what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) emulator: u64,
    pub(crate) gpu: u64,
    pub(crate) differing: u64,
}

impl Line {
    /// Whether the GPU was compared with itself: passes stacked, or a batch with each
    /// sequence alone (`tests/gpu/generation.rs`, `batches.rs`).
    fn is_gpu_with_gpu(&self) -> bool {
        self.what.ends_with("GPU, stacked") || self.what.contains(", sequence ")
    }
}

/// Sums of the comparisons that are wanted, by the words of each.
pub(crate) fn sums<'a>(
    runs: impl IntoIterator<Item = &'a Run>,
    wanted: impl Fn(&str) -> bool,
) -> Sums {
    let mut sums = Sums::default();
    for line in runs.into_iter().flat_map(|run| &run.rows).filter(|line| wanted(&line.what)) {
        if line.is_gpu_with_gpu() {
            sums.gpu += line.compared;
        } else {
            sums.emulator += line.compared;
        }
        sums.differing += line.differing;
    }
    sums
}

/// What a test ran on.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(crate) struct Setup {
    pub(crate) gpu: String,
    driver: String,
    cuda_driver: String,
    cublaslt: u64,
    nvrtc: String,
}

/// What tests are about, for the short table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    FullSize,
    Generation,
    Instruction,
    Product,
    /// What the library offers, not what it computes: counted in no sum of outputs.
    Offer,
    Kernel,
    /// Not in [`ROWS`].
    Other,
}

/// Tests that share a row of the table.
struct Row {
    kind: Kind,
    tests: &'static [&'static str],
    what: &'static str,
}

/// Reads the records. Of several of one test and setup the last counts.
pub(crate) fn read(lines: &str) -> Result<Vec<Run>, Failed> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, line) in lines.lines().enumerate() {
        let run: Run = serde_json::from_str(line)
            .map_err(|error| format!("gpu.jsonl, line {}: {error}", index + 1))?;
        let own = sums([&run], |_| true);
        if (run.compared, run.differing) != (own.emulator + own.gpu, own.differing) {
            let (index, compared, differing) = (index + 1, run.compared, run.differing);
            let what = "which is not the sum of its rows";
            return Err(format!(
                "gpu.jsonl, line {index}: {compared} compared, {differing} differ, {what}"
            )
            .into());
        }
        runs.retain(|other| (&other.test, &other.environment) != (&run.test, &run.environment));
        runs.push(run);
    }
    Ok(runs)
}

/// The setups of some runs, each once.
pub(crate) fn setups(runs: &[Run]) -> Vec<&Setup> {
    let mut setups: Vec<&Setup> = Vec::new();
    for run in runs {
        if !setups.contains(&&run.environment) {
            setups.push(&run.environment);
        }
    }
    setups
}

/// What a test is about.
pub(crate) fn kind(test: &str) -> Kind {
    let row = ROWS.iter().find(|row| row.tests.contains(&test));
    row.map_or(Kind::Other, |row| row.kind)
}

/// For each setup a sentence and a table.
pub(crate) fn tables(runs: &[Run]) -> String {
    let tables = setups(runs).into_iter().map(|setup| {
        let own: Vec<&Run> = runs.iter().filter(|run| run.environment == *setup).collect();
        table_of(setup, &own)
    });
    let tables: Vec<String> = tables.collect();
    match tables.is_empty() {
        true => "No test on a GPU is recorded yet.\n".into(),
        false => tables.join("\n"),
    }
}

fn table_of(setup: &Setup, runs: &[&Run]) -> String {
    let of = |tests: &[&str]| -> Vec<&Run> {
        runs.iter().copied().filter(|run| tests.contains(&run.test.as_str())).collect()
    };
    let mut rows: Vec<Vec<String>> = ROWS
        .iter()
        .filter_map(|known| {
            let own = of(known.tests);
            (!own.is_empty()).then(|| row(&own, known.what))
        })
        .collect();
    for run in runs.iter().filter(|run| kind(&run.test) == Kind::Other) {
        rows.push(row(&[run], ""));
    }
    let days = |run: &&Run| rfc3339(run.unix_time).split('T').next().map(str::to_owned);
    let mut days: Vec<String> = runs.iter().filter_map(days).collect();
    days.sort();
    days.dedup();
    let outputs = runs.iter().copied().filter(|run| kind(&run.test) != Kind::Offer);
    let all = sums(outputs, |_| true);
    let Setup { gpu, driver, cuda_driver, cublaslt, nvrtc } = setup;
    format!(
        "{gpu}, driver {driver}, CUDA {cuda_driver}, cuBLASLt {cublaslt}, NVRTC {nvrtc}, {}: \
         {} outputs compared with the emulator, {} of the GPU with the GPU, {} differ.\n\n{}",
        days.join(" and "),
        count(all.emulator),
        count(all.gpu),
        count(all.differing),
        table(&["test", "what", WITH_EMULATOR, WITH_GPU, "differing"], &rows)
    )
}

fn row(runs: &[&Run], what: &str) -> Vec<String> {
    let names: Vec<String> = runs.iter().map(|run| format!("`{}`", run.test)).collect();
    let sums = sums(runs.iter().copied(), |_| true);
    vec![
        names.join(", "),
        what.into(),
        count(sums.emulator),
        count(sums.gpu),
        count(sums.differing),
    ]
}

/// Headings of what was compared.
pub(crate) const WITH_EMULATOR: &str = "compared with the emulator";
pub(crate) const WITH_GPU: &str = "GPU with GPU";

/// What the tests compare, in words; the numbers are the records'.
const ROWS: &[Row] = &[
    Row {
        kind: Kind::FullSize,
        tests: &["a_model_of_full_size"],
        what: "Qwen3-4B (`spec/synthetic-model.md`, seed 1), every step of every pass, logits among them: prompts of 32, 250 and 1,000 tokens, 64 generated, the GPU against the emulator under `native` and under `native-stock`; under `native` then the GPU again with all passes stacked, and 1, 2, 5 and 16 sequences in one batch against each alone",
    },
    Row {
        kind: Kind::Generation,
        tests: &["batches_change_no_bit"],
        what: "1, 2, 5 and 16 sequences of two small models in one batch on the GPU, every step against each alone",
    },
    Row {
        kind: Kind::Generation,
        tests: &["engines_agree_on_the_example_model"],
        what: "both engines on `examples/tiny/model`, every step of every pass: prompts of 1, 17 and 203 tokens, 64 generated, 2,496 steps each; then the GPU again with all passes stacked",
    },
    Row {
        kind: Kind::Generation,
        tests: &["engines_agree_on_a_random_model"],
        what: "the same on a model of other sizes with random weights",
    },
    Row {
        kind: Kind::Instruction,
        tests: &["block_fma_is_mma_sync"],
        what: "`mma.sync.m16n8k16` bf16, seven input families",
    },
    Row {
        kind: Kind::Product,
        tests: &[
            "small_products_are_single_walks",
            "hard_products_are_single_walks",
            "large_products_are_single_walks",
        ],
        what: "cuBLASLt products with the catalogued algorithm, to m = 4096, n = 151,936, k = 9728",
    },
    Row {
        kind: Kind::Offer,
        tests: &["every_row_count_has_a_catalogued_algorithm"],
        what: "descriptors, m = 1 to 512, 23 shapes, looked up in `h200-cublaslt-13.1`; no outputs, and in no sum",
    },
    Row {
        kind: Kind::Kernel,
        tests: &["attention_is_its_recipe"],
        what: "18 positions, 6 head layouts, 5 input families",
    },
    Row { kind: Kind::Kernel, tests: &["rms_norm_is_its_recipe"], what: "widths 128 to 5120" },
    Row {
        kind: Kind::Kernel,
        tests: &["rope_is_its_recipe"],
        what: "three bases; positions from 0, to 40,960 and to 2^20",
    },
    Row {
        kind: Kind::Kernel,
        tests: &["elementwise_is_its_recipe"],
        what: "addition and SiLU times up, every bf16 against special values",
    },
    Row {
        kind: Kind::Kernel,
        tests: &["gathers_copy_bits", "argmax_is_its_recipe"],
        what: "embedding, last token, and the largest logit",
    },
    Row {
        kind: Kind::Instruction,
        tests: &["every_input_of_every_function_agrees"],
        what: "all 2^32 inputs of EX2, RCP, RSQ, LG2, expf, logf, sinf, cosf, 1/x and bf16 rounding",
    },
];
