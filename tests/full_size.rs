//! The transcripts of Qwen3-4B at full size, as far as they can be checked without its
//! eight gigabytes: encoding, signature, trust, plans, dispatch. What is compared with
//! the hardware is `spec/evidence/`.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use attest::model::content::Configuration;
use attest::model::synth::Checkpoint;
use attest::transcript::{Statement, Transcript};
use attest::verify::Anchor;
use attest::verify::forecast::{Request, forecast};
use attest::verify::report::{Outcome, Subject};
use attest::verify::trust::TrustStore;

/// Prompt tokens, by the end of the file's name.
const RUNS: [(&str, usize); 8] = [
    ("32", 32),
    ("250", 250),
    ("1000", 1000),
    ("batch-1", 3),
    ("batch-2", 13),
    ("batch-3", 58),
    ("batch-4", 62),
    ("batch-5", 187),
];
const STACKS: [&str; 2] = ["native", "native-stock"];
const GENERATED: usize = 64;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/qwen3-4b")
}

fn statements() -> BTreeMap<String, Statement> {
    let names = STACKS.iter().flat_map(|stack| RUNS.map(|(run, _)| format!("{stack}-{run}")));
    let read = |name: &str| fs::read(folder().join(format!("{name}.cbor"))).unwrap();
    let statement = |name: &str| Transcript::parse(read(name)).unwrap().statement().clone();
    names.map(|name| (name.clone(), statement(&name))).collect()
}

/// The small files of the checkpoint of the stated seed.
fn small_files(to: &Path) {
    let seed = fs::read_to_string(folder().join("seed")).unwrap().trim().parse().unwrap();
    let checkpoint = Checkpoint::new("qwen3-4b", None, seed).unwrap().unwrap();
    for part in checkpoint.parts().iter().filter(|part| part.len_bytes() < 1 << 20) {
        let mut file = File::create(to.join(part.name())).unwrap();
        part.write(&mut file, &mut |_| {}).unwrap();
    }
}

#[test]
fn everything_that_is_cheap_to_check_holds() {
    let model = tempfile::tempdir().unwrap();
    small_files(model.path());
    let store = fs::read_to_string(folder().join("trust.toml")).unwrap();
    let store = TrustStore::from_toml(&store).unwrap();
    for (name, statement) in statements() {
        let file = fs::read(folder().join(format!("{name}.cbor"))).unwrap();
        let foreseen = forecast(Request {
            file: file.into(),
            anchor: Anchor::Store(&store),
            nonce: None,
            open_config: &|_| Configuration::read(model.path()),
            threads: 2,
        });
        let failures: Vec<_> = foreseen.report.failures().collect();
        assert!(failures.is_empty(), "{name}: {failures:?}");
        let passed = [Subject::Signature, Subject::Trust, Subject::Environment];
        for subject in passed {
            let check = foreseen.report.checks.iter().find(|check| check.subject == subject);
            assert!(
                check.is_some_and(|check| matches!(check.outcome, Outcome::Passed { .. })),
                "{name}: {subject:?}"
            );
        }
        let cost = foreseen.cost.unwrap();
        assert!(cost.memory_bytes < 3 << 30, "{name}: {} bytes", cost.memory_bytes);
        assert_eq!(cost.passes, GENERATED, "{name}");
        let (_, prompt) = RUNS.iter().find(|(run, _)| name.ends_with(&format!("-{run}"))).unwrap();
        assert_eq!(statement.tokens_in.len(), *prompt, "{name}");
        assert_eq!(statement.environment.gpu.unwrap().name, "NVIDIA H200");
    }
}

#[test]
fn stacks_and_batches_are_what_the_names_say() {
    let statements = statements();
    let root = |name: &str| statements[name].logits.root;
    for (run, _) in RUNS {
        let (native, stock) =
            (&statements[&format!("native-{run}")], &statements[&format!("native-stock-{run}")]);
        assert_eq!((native.stack.as_str(), stock.stack.as_str()), ("native", "native-stock"));
        assert_eq!(native.prompt, stock.prompt);
        // Other recipes give other bits.
        assert_ne!(root(&format!("native-{run}")), root(&format!("native-stock-{run}")));
        let batched = run.starts_with("batch");
        for statement in [native, stock] {
            assert!(statement.passes.iter().all(|pass| pass.batch.is_some() == batched), "{run}");
        }
    }
    let split = |statement: &Statement| {
        statement.dispatch.iter().any(|row| row.recipe.starts_with("split_k_workspace_f32"))
    };
    assert!(
        statements
            .iter()
            .all(|(name, statement)| { split(statement) == name.starts_with("native-stock") })
    );
}
