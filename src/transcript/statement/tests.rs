//! A statement and its bytes.

use super::*;
use crate::num::Dtype;
use crate::transcript::merkle;

fn sample() -> Statement {
    let digest = |byte| Digest([byte; 32]);
    let artifact = |id: &str, byte| Artifact { id: id.to_owned(), digest: digest(byte) };
    Statement {
        format_version: FORMAT_VERSION,
        tool: Tool { name: "attest".to_owned(), version: "0.1.0".to_owned() },
        numerics: 1,
        model: ModelManifest::new(
            "tiny",
            vec![ManifestFile {
                path: "config.json".to_owned(),
                len_bytes: 700,
                sha256: digest(1),
            }],
        ),
        profile: artifact("h200", 2),
        catalogue: artifact("h200-native", 3),
        environment: Environment { engine: Engine::Emulator, gpu: None },
        stack: "native".to_owned(),
        sampling: Sampling {
            rule: "greedy".to_owned(),
            max_new_tokens: 0,
            stop_ids: vec![],
            recorded: String::new(),
        },
        prompt: b"Call me".to_vec(),
        tokens_in: vec![1, 300, 70_000],
        tokens_out: vec![],
        finish: FinishReason::Length,
        dispatch: vec![],
        passes: vec![],
        logits: Logits {
            mode: LogitsMode::Full,
            count: 0,
            vocab: 512,
            dtype: Dtype::Bf16,
            root: merkle::root(&[]),
        },
        trace: Trace { mode: TraceMode::None, count: 0, root: None },
        sections: vec![Section {
            kind: "logits".to_owned(),
            len_bytes: 0,
            leaf_count: 0,
            sha256: sha256(&[]),
        }],
        claimed_time: 1_796_000_000,
        nonce: None,
        extensions: vec![],
    }
}

#[test]
fn reads_back_what_it_writes() {
    let mut statement = sample();
    assert_eq!(Statement::from_bytes(&statement.to_bytes().unwrap(), 0).unwrap(), statement);
    statement.nonce = Some(vec![1, 2, 3]);
    assert_eq!(Statement::from_bytes(&statement.to_bytes().unwrap(), 0).unwrap(), statement);
}

#[test]
fn keeps_optional_fields_and_refuses_critical_ones_it_does_not_know() {
    let mut statement = sample();
    statement.extensions = vec![Extension { key: 64, value: Value::from("later") }];
    assert_eq!(Statement::from_bytes(&statement.to_bytes().unwrap(), 0).unwrap(), statement);

    let mut entries = statement.known_entries();
    entries.insert(63, Value::from(1));
    let refusal = Statement::from_bytes(&encode(&map(entries)), 0).unwrap_err();
    assert_eq!(refusal.to_string(), "statement: the statement has the unknown key 63");
    statement.extensions[0].key = 63;
    assert!(statement.to_bytes().is_err());
}

#[test]
fn every_field_but_the_nonce_is_required() {
    let all = sample().known_entries();
    for key in 1..=19u64 {
        let mut entries = all.clone();
        entries.remove(&key);
        let refusal = Statement::from_bytes(&encode(&map(entries)), 0).unwrap_err();
        assert!(matches!(refusal, TranscriptError::MissingField { .. }), "{key}: {refusal}");
    }
}

#[test]
fn names_the_field_of_another_type() {
    let mut entries = sample().known_entries();
    entries.insert(11, Value::Array(vec![Value::from(1), Value::from("x")]));
    let refusal = Statement::from_bytes(&encode(&map(entries)), 0).unwrap_err();
    let message = "statement: tokens_in[1] must be an unsigned integer below 2^32";
    assert_eq!(refusal.to_string(), message);
}

#[test]
fn refuses_fields_that_contradict_each_other() {
    type Change = fn(&mut Statement);
    let cases: [(Change, &str); 9] = [
        (|s| s.model.digest = Digest([0; 32]), "the manifest digest is"),
        (|s| s.model.files.clear(), "lists no file"),
        (|s| s.environment.engine = Engine::Cuda, "does not name a GPU"),
        (|s| s.sampling.stop_ids = vec![2, 2], "stop ids are not in ascending order"),
        (|s| s.logits.count = 1, "the passes have 0 logits rows"),
        (|s| s.sections.clear(), "0 sections where 1 are due"),
        (|s| s.sections[0].len_bytes = 1, "section logits of 0 leaves in 1 bytes"),
        (|s| s.sections[0].kind = "trace".to_owned(), "where \"logits\" is due"),
        (|s| s.trace.root = Some(Digest([0; 32])), "exclude each other"),
    ];
    for (change, message) in cases {
        let mut statement = sample();
        change(&mut statement);
        let refusal = statement.to_bytes().unwrap_err();
        assert!(refusal.to_string().contains(message), "{refusal}");
    }
}
