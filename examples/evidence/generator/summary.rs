//! The short table: GPU, stack, what was compared, how much, and what differs.

use attest::plan::Stack;
use attest::recipe::catalog::Catalog;
use attest::recipe::catalog::listing::Listing;

use super::Evidence;
use super::catalogues::{Totals, chosen};
use super::gpu_tests::{Kind, Run, WITH_EMULATOR, WITH_GPU, kind, setups, sums};
use super::markdown::{count, table as markdown_table};
use super::models::lengths;
use super::record::Record;

/// Whole models first, then down to instructions.
pub(crate) fn table(evidence: &Evidence) -> String {
    let mut rows = whole_models(&evidence.models);
    rows.extend(tests(&evidence.tests, &[Kind::FullSize, Kind::Generation]));
    rows.extend(products(&evidence.catalogues));
    let kinds = [Kind::Product, Kind::Kernel, Kind::Instruction, Kind::Other];
    rows.extend(tests(&evidence.tests, &kinds));
    markdown_table(&["GPU", "stack", "what", WITH_EMULATOR, WITH_GPU, "differing"], &rows)
}

/// A row for each GPU, stack and model; or one that says there is none.
fn whole_models(records: &[Record]) -> Vec<Vec<String>> {
    let key = |record: &Record| {
        (record.gpu.name.clone(), record.stack.clone(), record.model.name.clone())
    };
    let mut keys: Vec<_> = Vec::new();
    for record in records {
        if !keys.contains(&key(record)) {
            keys.push(key(record));
        }
    }
    if keys.is_empty() {
        let none = ["–", "–", "transcripts of whole models: none recorded yet", "0", "0", "–"];
        return vec![none.map(str::to_owned).to_vec()];
    }
    keys.into_iter()
        .map(|own| {
            let runs: Vec<&Record> = records.iter().filter(|record| key(record) == own).collect();
            let (gpu, stack, model) = own;
            let exact = runs.iter().filter(|run| run.differing.is_some());
            let compared = exact.map(|run| run.logits.elements + run.trace.elements_beside_logits);
            let refused = runs.iter().filter(|run| run.differing.is_none()).count();
            let differing: u64 = runs.iter().filter_map(|run| run.differing).sum();
            let differing = match refused {
                0 => count(differing),
                some => format!("{}; {some} of {} not verified", count(differing), runs.len()),
            };
            let what = format!(
                "transcripts of {model}, prompt + generated tokens: {}",
                tallied(runs.iter().map(|run| lengths(run))).join(", ")
            );
            vec![gpu, format!("`{stack}`"), what, count(compared.sum()), count(0), differing]
        })
        .collect()
}

/// Texts in the order that they first come, each with how often it does.
fn tallied(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut tally: Vec<(String, u32)> = Vec::new();
    for text in texts {
        match tally.iter_mut().find(|(known, _)| *known == text) {
            Some((_, times)) => *times += 1,
            None => tally.push((text, 1)),
        }
    }
    let told = |(text, times)| match times {
        1 => text,
        _ => format!("{times} times {text}"),
    };
    tally.into_iter().map(told).collect()
}

/// A row for each GPU and stack of the catalogues that list products.
fn products(catalogues: &[Catalog]) -> Vec<Vec<String>> {
    let listings: Vec<&Listing> = catalogues.iter().filter_map(Catalog::listing).collect();
    let mut gpus: Vec<&[String]> = listings.iter().map(|listing| &listing.gpus[..]).collect();
    gpus.dedup();
    let mut rows = Vec::new();
    for gpu in gpus {
        let own: Vec<&Listing> =
            listings.iter().copied().filter(|listing| listing.gpus == gpu).collect();
        let ids: Vec<String> = own.iter().map(|listing| format!("`{}`", listing.id)).collect();
        for stack in [Stack::Native, Stack::NativeStock] {
            let shapes = own.iter().flat_map(|listing| &listing.shapes);
            let totals = Totals::of(shapes.flat_map(|shape| chosen(shape, stack.choice())));
            rows.push(vec![
                gpu.join(", "),
                format!("`{}`", stack.name()),
                format!(
                    "products that {} list: {} algorithms; results and accumulators, then repetitions",
                    ids.join(", "),
                    count(totals.algorithms)
                ),
                count(totals.outputs + totals.accumulators),
                count(totals.repeated),
                count(totals.differing),
            ]);
        }
    }
    rows
}

/// A row for each GPU and kind of test.
fn tests(runs: &[Run], kinds: &[Kind]) -> Vec<Vec<String>> {
    let mut gpus: Vec<&str> = setups(runs).into_iter().map(|setup| setup.gpu.as_str()).collect();
    gpus.dedup();
    let mut rows = Vec::new();
    for gpu in gpus {
        for &of in kinds {
            let own: Vec<&Run> = runs
                .iter()
                .filter(|run| run.environment.gpu == gpu && kind(&run.test) == of)
                .collect();
            if own.is_empty() {
                continue;
            }
            for (stack, wanted, what) in words(of) {
                let sums = sums(own.iter().copied(), wanted);
                rows.push(vec![
                    gpu.to_owned(),
                    (*stack).to_owned(),
                    (*what).to_owned(),
                    count(sums.emulator),
                    count(sums.gpu),
                    count(sums.differing),
                ]);
            }
        }
    }
    rows
}

/// Rows of a kind of test: the stacks that they speak for, which of its comparisons, and
/// what they compare.
type Words = (&'static str, fn(&str) -> bool, &'static str);

fn words(kind: Kind) -> &'static [Words] {
    match kind {
        Kind::FullSize => &[
            (
                "`native`",
                |what| !what.contains(", native-stock, "),
                "every step of generations of Qwen3-4B; of the GPU with itself: passes stacked, batches of 1 to 16",
            ),
            (
                "`native-stock`",
                |what| what.contains(", native-stock, "),
                "every step of generations of Qwen3-4B",
            ),
        ],
        Kind::Generation => &[(
            "`native`",
            |_| true,
            "every step of generations of two small models; of the GPU with itself: passes stacked, batches of 1 to 16",
        )],
        Kind::Product => &[("`native`", |_| true, "products that `h200-cublaslt-13.1` covers")],
        Kind::Kernel => {
            &[("both", |_| true, "attention, RMSNorm, RoPE and the other kernels alone")]
        }
        Kind::Instruction => {
            &[("both", |_| true, "`mma.sync` bf16; special functions and rounding at every input")]
        }
        Kind::Offer | Kind::Other => &[("–", |_| true, "other tests")],
    }
}
