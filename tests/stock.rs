//! What the signer of a `native-stock` transcript can state, and what is found out
//! from the statement alone. Statements are those of `examples/qwen3-4b`, changed and
//! signed again by a trusted key; nothing is executed, so a "passes" here says that
//! the environment holds, not that the bits do.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

mod support;

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use attest::engine::generate::layout_in_batches;
use attest::model::Config;
use attest::model::content::Configuration;
use attest::model::synth::Checkpoint;
use attest::num::Digest;
use attest::plan::{Contract, Plan};
use attest::recipe::catalog::Catalog;
use attest::transcript::statement::{Artifact, Batch, DispatchRow, Engine};
use attest::transcript::{Statement, Transcript, capture};
use attest::verify::Anchor;
use attest::verify::forecast::{Request, forecast};
use attest::verify::report::{Outcome, Subject, Verdict};

use Verdict::{Incomplete, Malformed, Mismatch};

const LISTING: &str = "h200-cublaslt-13.1-qwen3-4b";

/// The committed statement of a batch of five, and its section: digests of logits.
fn committed() -> (Statement, Vec<Vec<u8>>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("examples/qwen3-4b/native-stock-batch-2.cbor");
    let transcript = Transcript::parse(fs::read(path).unwrap()).unwrap();
    let statement = transcript.statement().clone();
    let rows = (0..statement.logits.count).map(|row| transcript.logits_digest(row).unwrap());
    let contents = rows.flat_map(|Digest(bytes)| bytes).collect();
    (statement, vec![contents])
}

/// The configuration of the examples' checkpoint, in a folder.
fn config() -> (tempfile::TempDir, Config) {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = Checkpoint::new("qwen3-4b", None, 1).unwrap().unwrap();
    let part = checkpoint.parts().into_iter().find(|part| part.name() == "config.json").unwrap();
    let mut file = File::create(folder.path().join(part.name())).unwrap();
    part.write(&mut file, &mut |_| {}).unwrap();
    let read = Configuration::read(folder.path()).unwrap().config;
    (folder, read)
}

/// The check of the environment, of a statement signed by a trusted key.
fn environment(
    statement: &Statement,
    contents: &[Vec<u8>],
    model: &Path,
) -> Result<String, (Verdict, String)> {
    let mut statement = statement.clone();
    statement.claimed_time = support::TIME;
    let file = Transcript::seal(&statement, contents, &support::key())
        .map_err(|error| (Malformed, error.to_string()))?;
    let foreseen = forecast(Request {
        file: file.as_bytes().to_vec().into(),
        anchor: Anchor::Store(&support::trust()),
        nonce: None,
        open_config: &|_| Configuration::read(model),
        threads: 2,
    });
    let mut checks = foreseen.report.checks.into_iter();
    let check = checks.find(|check| check.subject == Subject::Environment);
    match check.unwrap().outcome {
        Outcome::Passed { detail } => Ok(detail),
        Outcome::Failed { leads_to, detail, .. } => Err((leads_to, detail)),
        other @ (Outcome::Partial { .. }
        | Outcome::NotAsked { .. }
        | Outcome::NotDecided { .. }) => {
            panic!("{other:?}")
        }
    }
}

fn catalogue(id: &str) -> Artifact {
    Artifact { id: id.into(), digest: Catalog::by_id(id).unwrap().digest() }
}

/// A product that the library splits.
fn split(statement: &mut Statement) -> &mut DispatchRow {
    statement.dispatch.iter_mut().find(|row| row.recipe.starts_with("split_k")).unwrap()
}

/// What is done to the statement, the verdict, and words of the reason.
type Lie = (&'static str, fn(&mut Statement), Verdict, &'static str);

const LIES: &[Lie] = &[
    (
        "a product in two rows",
        |s| {
            let mut row = split(s).clone();
            row.algorithm.as_mut().unwrap().workspace_bytes += 1;
            s.dispatch.push(row);
        },
        Mismatch,
        "two dispatch rows for linear m=5 n=2560 k=4096",
    ),
    (
        "more workspace than there was",
        |s| split(s).algorithm.as_mut().unwrap().workspace_bytes = (32 << 20) + 1,
        Incomplete,
        "algorithm 66 needs 33554433 bytes of workspace for linear m=5",
    ),
    (
        "another algorithm of the same recipe",
        |s| split(s).algorithm.as_mut().unwrap().tile += 1,
        Incomplete,
        "is listed for m=5, found algorithm 66 (tile 11",
    ),
    (
        "another recipe",
        |s| split(s).recipe = "single_walk".into(),
        Mismatch,
        "no dispatch row for linear m=5 n=2560 k=4096 split_k",
    ),
    ("no algorithm", |s| split(s).algorithm = None, Mismatch, "no algorithm for linear m=5"),
    (
        "a catalogue that lists no products",
        |s| s.catalogue = catalogue("h200-cublaslt-13.1"),
        Incomplete,
        "lists no products, only families",
    ),
    (
        "another model's listing",
        |s| s.catalogue = catalogue("h200-cublaslt-13.1-qwen3-8b"),
        Incomplete,
        "lists no product of n=4096 k=2560",
    ),
    (
        "more rows than are listed",
        |s| s.passes[3].batch = Some(Batch { passes: 2, rows: 4097 }),
        Incomplete,
        "with m=4097; it goes up to m=4096",
    ),
    (
        "a batch of another recipe, the plan left",
        |s| s.passes[3].batch = Some(Batch { passes: 64, rows: 64 }),
        Mismatch,
        "pass 3 has plan digest",
    ),
    (
        "a batch of the same recipes, the dispatch rows left",
        |s| s.passes[3].batch = None,
        Mismatch,
        "no dispatch row for linear m=1",
    ),
    (
        "logits of one pass in another",
        |s| (s.passes[3].logits_rows, s.passes[4].logits_rows) = (0, 2),
        Malformed,
        "pass 4 has 2 logits rows for 1 tokens",
    ),
    ("the other stack", |s| s.stack = "native".into(), Mismatch, "pass 0 has plan digest"),
];

#[test]
fn lies_about_the_launch_are_found_out_and_named() {
    let (honest, contents) = committed();
    let (folder, _) = config();
    assert!(environment(&honest, &contents, folder.path()).is_ok(), "the committed one");
    for (name, tell, verdict, words) in LIES {
        let mut lie = honest.clone();
        tell(&mut lie);
        lie.dispatch.sort();
        let (found, reason) = environment(&lie, &contents, folder.path()).unwrap_err();
        assert_eq!(found, *verdict, "{name}: {reason}");
        assert!(reason.contains(words), "{name}: {reason}");
    }
}

/// Plans of a statement's passes, each in the batch stated.
fn plans(statement: &Statement, config: &Config) -> Vec<Plan> {
    let catalog = Catalog::by_id(LISTING).unwrap();
    let batches: Vec<_> = statement.passes.iter().map(capture::stated_batch).collect();
    let (tokens_in, tokens_out) = (&statement.tokens_in, &statement.tokens_out);
    let contract = Contract::NativeStock(&catalog);
    layout_in_batches(config, contract, tokens_in, tokens_out, &batches).unwrap().0
}

/// `threat-model.md`, N8: no statement shows whether there was such a batch.
#[test]
fn a_batch_that_never_was_passes_if_the_rest_goes_with_it() {
    let (honest, contents) = committed();
    let (folder, config) = config();
    let mut digests = Vec::new();
    for rows in [5, 4096] {
        let mut made = honest.clone();
        made.passes[3].batch = Some(Batch { passes: 5, rows });
        let plans = plans(&made, &config);
        made.passes = plans.iter().map(capture::pass_record).collect();
        made.dispatch = capture::products(&plans).into_iter().collect();
        made.environment.gpu = None;
        made.environment.engine = Engine::Emulator;
        let passed = environment(&made, &contents, folder.path());
        assert!(passed.is_ok(), "{rows} rows: {passed:?}");
        digests.push(made.passes[3].plan_digest);
    }
    assert_ne!(digests[0], digests[1], "but its bits are those of its own recipes");
}

#[test]
fn a_batch_for_every_pass_does_not_cost_a_plan_for_every_pass() {
    let (mut made, _) = committed();
    for (pass, rows) in made.passes.iter_mut().skip(1).zip(2000..) {
        pass.batch = Some(Batch { passes: 2, rows });
    }
    let (_folder, config) = config();
    let plans = plans(&made, &config);
    let mut distinct: Vec<_> = plans.iter().map(|plan| Arc::as_ptr(&plan.steps)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() <= 4, "{} lists of steps for {} passes", distinct.len(), plans.len());
}
