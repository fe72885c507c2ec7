//! The tables of the evidence are those of its files, and a record of a whole model says
//! what was compared and nothing more.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

#[path = "../examples/evidence/generator/mod.rs"]
mod generator;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use attest::model::Config;
use attest::transcript::key::PrivateKey;
use attest::transcript::{Transcript, statement};
use serde_json::{Value, json};

use generator::record::{Batch, Record, read};
use generator::recording::{By, record};
use generator::{Evidence, PAGES, catalogues, gpu_tests, markdown, models, regenerated, summary};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn tiny(name: &str) -> PathBuf {
    root().join("examples/tiny").join(name)
}

fn config() -> Config {
    Config::from_json(&fs::read(tiny("model/config.json")).unwrap()).unwrap()
}

fn transcript() -> Vec<u8> {
    fs::read(tiny("transcript.cbor")).unwrap()
}

/// The report of the transcript in `examples/tiny`.
fn report() -> Value {
    static REPORT: OnceLock<Value> = OnceLock::new();
    let made = REPORT.get_or_init(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_attest"));
        command.arg("verify").arg(tiny("transcript.cbor")).arg("--json");
        command.arg("--model").arg(tiny("model")).arg("--trust").arg(tiny("trust.toml"));
        let out = command.output().unwrap();
        serde_json::from_slice(&out.stdout).unwrap()
    });
    made.clone()
}

fn recorded() -> Record {
    let by = By { threads: Some(2), seconds: Some(0.25) };
    record(transcript(), &report(), &config(), &by).unwrap()
}

#[test]
fn the_pages_are_what_the_files_give() {
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let due = regenerated(root(), page).unwrap();
        let stale = due.lines().zip(text.lines()).find(|(due, found)| due != found);
        assert!(
            due == text,
            "{page} is behind spec/evidence or catalogs: cargo run --release --example evidence -- tables\n{stale:?}"
        );
    }
}

#[test]
fn records_what_was_compared() {
    let made = recorded();
    assert_eq!((made.verdict.as_str(), made.differing), ("VERIFIED", Some(0)));
    assert_eq!(made.findings, Vec::<Value>::new());
    assert_eq!((made.prompt_tokens, made.generated_tokens, made.batch.as_ref()), (28, 96, None));
    // 123 tokens: the embedding of 256, and 2 layers of ten outputs of 256 and seven of
    // 512; 96 passes: two rows of 256, one of 1536 logits, and a token.
    let (layers, ends) = (123 * (256 + 2 * (10 * 256 + 7 * 512)), 96 * (2 * 256 + 1536 + 1));
    assert_eq!(made.logits.elements, 96 * 1536);
    assert_eq!((made.trace.outputs, made.trace.elements), (96 * 39, layers + ends));
    assert_eq!(made.trace.elements_beside_logits, layers + ends - 96 * 1536);
    let sizes = (made.model.layers, made.model.hidden, made.model.vocabulary);
    assert_eq!(sizes, (2, 256, 1536));
    assert_eq!((made.gpu.name.as_str(), made.gpu.cublaslt.as_str()), ("NVIDIA H200", "130100"));
    assert_eq!(made.claimed_time, "2026-11-30T15:10:13Z");
    assert_eq!((made.verifier.threads, made.verifier.seconds), (Some(2), Some(0.25)));
}

#[test]
fn a_record_is_read_as_it_was_written_and_only_once() {
    let line = serde_json::to_string(&recorded()).unwrap();
    assert_eq!(read(&line).unwrap(), [recorded()]);
    let twice = read(&format!("{line}\n{line}\n")).unwrap_err().to_string();
    assert!(twice.contains("two records"), "{twice}");
    let more = line.replacen('{', "{\"note\":1,", 1);
    assert!(read(&more).unwrap_err().to_string().contains("line 1"));
}

#[test]
fn tells_what_passes_were_launched_with() {
    let alone = Transcript::parse(transcript()).unwrap();
    let mut statement = alone.statement().clone();
    for (pass, passes) in [(0, 2), (1, 8), (2, 5)] {
        let rows = statement.passes[pass].token_count + 7;
        statement.passes[pass].batch = Some(statement::Batch { passes, rows });
    }
    let sections = ["logits", "trace"].map(|kind| alone.section(kind).unwrap().to_vec());
    let key = PrivateKey::from_seed(&[0x5a; 32]);
    let batched = Transcript::seal(&statement, &sections, &key).unwrap();
    let mut of_batched = report();
    of_batched["transcript"] = batched.digest().to_string().into();
    let file = batched.as_bytes().to_vec();
    let made = record(file, &of_batched, &config(), &By::default()).unwrap();
    assert_eq!(made.batch, Some(Batch { most_together: 8, passes: 3 }));
}

#[test]
fn a_run_that_did_not_verify_counts_for_nothing() {
    let mut refused = report();
    let failed = json!({ "subject": "execution", "outcome": "failed", "detail": "step x differs" });
    let checks = refused["checks"].as_array_mut().unwrap();
    *checks.iter_mut().find(|check| check["subject"] == "execution").unwrap() = failed.clone();
    // Whatever the verdict's word is.
    for verdict in ["MISMATCH", "VERIFIED"] {
        refused["verdict"] = verdict.into();
        let made = record(transcript(), &refused, &config(), &By::default()).unwrap();
        assert_eq!((made.differing, made.findings.clone()), (None, vec![failed.clone()]));
        let table = models::tables(std::slice::from_ref(&made));
        assert!(table.contains("execution: step x differs") && !table.contains("147,456"));
        let short = short(vec![made]);
        assert!(short.contains("| 0 | 0; 1 of 1 not verified |"), "{short}");
    }
    let unsigned = json!({ "subject": "trust", "outcome": "not_asked", "reason": "any key" });
    let mut untrusted = report();
    untrusted["checks"].as_array_mut().unwrap().push(unsigned);
    let made = record(transcript(), &untrusted, &config(), &By::default()).unwrap();
    assert_eq!(made.differing, None);
}

#[test]
fn refuses_what_does_not_belong_together() {
    let refusal = |file: Vec<u8>, report: &Value, config: &Config| {
        record(file, report, config, &By::default()).unwrap_err().to_string()
    };
    let emulator = fs::read(tiny("transcript-emulator.cbor")).unwrap();
    assert!(
        refusal(emulator.clone(), &report(), &config()).contains("the report is of transcript")
    );
    let mut other = report();
    let digest = Transcript::parse(emulator.clone()).unwrap().digest();
    other["transcript"] = digest.to_string().into();
    assert!(refusal(emulator, &other, &config()).contains("not made on a GPU"));
    let mut shorter = report();
    shorter["checks"].as_array_mut().unwrap().retain(|check| check["subject"] != "execution");
    assert!(refusal(transcript(), &shorter, &config()).contains("no check of \"execution\""));
    let larger = Config { intermediate_size: 1024, ..config() };
    assert!(refusal(transcript(), &report(), &larger).contains("pass 0 has plan digest"));
}

fn short(models: Vec<Record>) -> String {
    summary::table(&Evidence { models, ..Evidence::read(root()).unwrap() })
}

#[test]
fn the_tables_show_a_record() {
    let made = Record { batch: Some(Batch { most_together: 8, passes: 90 }), ..recorded() };
    let table = models::tables(std::slice::from_ref(&made));
    for part in [
        "28 + 96",
        "| 147,456 | 1,592,160 | 0 |",
        "up to 8 together, 90 passes",
        "2 threads, 0.25 s",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(short(vec![made.clone()]).contains("28 + 96 | 1,739,616 | 0 |"));
    let both = short(vec![made.clone(), made]);
    assert!(both.contains("2 times 28 + 96 | 3,479,232 | 0 |"), "{both}");
    assert!(short(Vec::new()).contains("none recorded yet"));
}

#[test]
fn the_tables_show_what_differs() {
    let lines = fs::read_to_string(root().join("spec/evidence/gpu.jsonl")).unwrap();
    let changed = lines.replacen("\"differing\":0,\"rows\"", "\"differing\":7,\"rows\"", 1);
    assert_ne!(lines, changed);
    // A sum that is not that of its comparisons is no record.
    assert!(gpu_tests::read(&changed).unwrap_err().to_string().contains("7 differ"));
    let changed = changed.replacen("\"differing\":0,\"first\"", "\"differing\":7,\"first\"", 1);
    let table = gpu_tests::tables(&gpu_tests::read(&changed).unwrap());
    assert!(table.contains("of the GPU with the GPU, 7 differ") && table.contains("| 7 |"));
    let renamed = lines.replacen("rope_is_its_recipe", "a_new_test", 1);
    assert!(gpu_tests::tables(&gpu_tests::read(&renamed).unwrap()).contains("`a_new_test`"));
}

#[test]
fn a_catalogue_counts_each_algorithm_once() {
    let id = "h200-cublaslt-13.1-qwen3-4b";
    let file = fs::read_to_string(root().join(format!("catalogs/{id}.json"))).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let of = |shape: &Value| shape["algorithms"].as_array().unwrap().clone();
    let algorithms: Vec<Value> = file["shapes"].as_array().unwrap().iter().flat_map(of).collect();
    let counts = |algorithm: &Value| {
        let of = |name: &str| algorithm["compared"][name].as_u64().unwrap();
        of("outputs") + of("accumulators") + of("repeated")
    };
    let compared: u64 = algorithms.iter().map(counts).sum();
    let due = format!(
        "{} algorithms listed, {} values compared, 0 differ",
        markdown::count(algorithms.len() as u64),
        markdown::count(compared)
    );
    let table = catalogues::tables(&Evidence::read(root()).unwrap().catalogues);
    let line = table.lines().find(|line| line.starts_with(&format!("`{id}`"))).unwrap();
    assert!(line.contains(&due), "{due}: {line}");
}

#[test]
fn marks_and_counts() {
    let page = "a\n<!-- generated: x -->\nold\n<!-- /generated: x -->\nb\n";
    let due = page.replace("old", "new");
    assert_eq!(markdown::replaced(page, "x", "new\n").unwrap(), due);
    assert!(markdown::replaced(page, "y", "").is_err());
    let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
    for (number, text) in cases {
        assert_eq!(markdown::count(number), text);
    }
}
