use std::borrow::Cow;

use attest::model::files::Folder;
use attest::model::weights::{OutputMatrix, Weight, Weights};
use attest::model::{Config, Kind};
use attest::num::Bf16;
use safetensors::Dtype;
use serde_json::{Value, json};

use crate::folder::{Entry, TestFolder, file_of, raw_file, tensors};

const EMBEDDING: &str = "model.embed_tokens.weight";
const OUTPUT: &str = "lm_head.weight";

fn assert_holds_every_tensor(weights: &Weights) {
    for (name, entry) in tensors() {
        let weight = weights.tensor(&name).unwrap();
        assert_eq!((weight.shape, weight.bytes), (&entry.shape[..], &entry.bytes[..]), "{name}");
        assert_eq!(weight.elements()[..], Bf16::from_le_bytes(&entry.bytes)[..], "{name}");
    }
    assert_eq!(weights.names().count(), 24);
    let bytes = |(_, entry): (String, Entry)| entry.bytes.len() as u64;
    assert_eq!(weights.len_bytes(), tensors().into_iter().map(bytes).sum::<u64>());
    assert!(weights.tensor(OUTPUT).is_none());
}

#[test]
fn reads_one_file_and_shards_alike() {
    assert_holds_every_tensor(TestFolder::valid().open().weights());
    assert_holds_every_tensor(TestFolder::sharded().open().weights());
}

#[test]
fn borrows_aligned_elements_and_copies_others() {
    let bytes: Vec<u8> = (0..17).collect();
    for start in 0..2 {
        let weight = Weight { shape: &[8], bytes: &bytes[start..start + 16] };
        assert_eq!(weight.elements()[..], Bf16::from_le_bytes(weight.bytes)[..], "start {start}");
    }
    // The writer pads its header, so a file of its own is never copied.
    let folder = TestFolder::valid();
    let model = folder.open();
    assert!(matches!(model.weights().tensor(EMBEDDING).unwrap().elements(), Cow::Borrowed(_)));

    // An odd header moves every tensor to an odd offset; nothing else changes.
    let file = folder.read("model.safetensors");
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let mut odd = (length as u64 + 1).to_le_bytes().to_vec();
    odd.extend(&file[8..8 + length]);
    odd.push(b' ');
    odd.extend(&file[8 + length..]);
    folder.write("model.safetensors", &odd);
    let model = folder.open();
    assert!(matches!(model.weights().tensor(EMBEDDING).unwrap().elements(), Cow::Owned(_)));
    assert_holds_every_tensor(model.weights());
}

#[test]
fn output_matrix_follows_the_configuration() {
    let same = tensors()[EMBEDDING].clone();
    let other = Entry::bf16(&[8, 128], 99);
    // (tied, lm_head.weight, which, reason)
    let cases = [
        (true, None, OutputMatrix::Tied, "the published form"),
        (true, Some(&same), OutputMatrix::TiedWithEqualCopy, "a harmless copy"),
        (true, Some(&other), OutputMatrix::TiedWithOtherCopy, "transformers ties, so do we"),
        (false, Some(&other), OutputMatrix::Separate, "its own matrix"),
        (false, Some(&same), OutputMatrix::Separate, "its own matrix, by chance equal"),
    ];
    for (tied, head, which, reason) in cases {
        let folder = TestFolder::valid();
        folder.set("tie_word_embeddings", json!(tied));
        let mut entries = tensors();
        if let Some(head) = head {
            entries.insert(OUTPUT.into(), head.clone());
        }
        folder.write_tensors("model.safetensors", &entries);
        let model = folder.open();
        assert_eq!(model.weights().output_matrix(), which, "{reason}");
        let warnings = model.warnings();
        if which == OutputMatrix::TiedWithOtherCopy {
            assert_eq!(
                warnings,
                ["lm_head.weight differs from model.embed_tokens.weight though \
                tie_word_embeddings is true; model.embed_tokens.weight is used"]
            );
        } else {
            assert!(warnings.is_empty(), "{reason}: {warnings:?}");
        }
        let used = if tied { EMBEDDING } else { OUTPUT };
        assert_eq!(which.tensor(), used, "{reason}");
    }

    let folder = TestFolder::valid();
    folder.set("tie_word_embeddings", json!(false));
    folder.assert_refused(
        Kind::Incomplete,
        "tensor lm_head.weight is missing: tie_word_embeddings is false, so the embedding does not stand in",
    );
}

#[test]
fn compares_tensors_with_the_architecture() {
    let name = "model.layers.1.mlp.up_proj.weight";
    let folder = TestFolder::valid();
    let assert_with = |entry: Option<Entry>, kind, message: &str| {
        let mut entries = tensors();
        match entry {
            Some(entry) => entries.insert(name.into(), entry),
            None => entries.remove(name),
        };
        folder.write_tensors("model.safetensors", &entries);
        folder.assert_refused(kind, message);
    };
    assert_with(None, Kind::Incomplete, &format!("tensor {name} is missing"));
    assert_with(
        Some(Entry::bf16(&[128, 24], 0)),
        Kind::Malformed,
        &format!("tensor {name} has shape [128, 24], expected [24, 128]"),
    );
    let narrow = Entry { dtype: Dtype::F32, shape: vec![24, 128], bytes: vec![0; 24 * 128 * 4] };
    assert_with(
        Some(narrow),
        Kind::Incomplete,
        &format!("tensor {name} has type F32, only BF16 is supported"),
    );

    let mut entries = tensors();
    entries.insert("model.layers.0.self_attn.q_proj.bias".into(), Entry::bf16(&[256], 0));
    entries.insert("model.layers.2.input_layernorm.weight".into(), Entry::bf16(&[128], 0));
    folder.write_tensors("model.safetensors", &entries);
    folder.assert_refused(
        Kind::Incomplete,
        "tensor model.layers.0.self_attn.q_proj.bias in model.safetensors is not part of the \
         architecture (2 such tensors)",
    );
}

#[test]
fn refuses_shards_outside_the_folder() {
    for shard in [
        "../other.safetensors",
        "/etc/passwd",
        "/tmp/x.safetensors",
        "a/b.safetensors",
        "a\\b.safetensors",
        "C:b.safetensors",
        "..",
        "",
        ".hidden.safetensors",
        "weights.bin",
        "b.safetensors\0",
    ] {
        let folder = TestFolder::sharded();
        let mut index: Value =
            serde_json::from_slice(&folder.read("model.safetensors.index.json")).unwrap();
        index["weight_map"][EMBEDDING] = json!(shard);
        folder.write("model.safetensors.index.json", index.to_string());
        folder.assert_refused(
            Kind::Malformed,
            &format!(
                "model.safetensors.index.json: tensor {EMBEDDING} is placed in {shard:?}, \
                 not a .safetensors file of the folder"
            ),
        );
    }
}

#[test]
fn index_and_shards_must_agree() {
    let first = "model-00001-of-00002.safetensors";
    let second = "model-00002-of-00002.safetensors";
    let edited = |edit: &dyn Fn(&mut Value)| {
        let folder = TestFolder::sharded();
        let name = "model.safetensors.index.json";
        let mut index: Value = serde_json::from_slice(&folder.read(name)).unwrap();
        edit(&mut index);
        folder.write(name, index.to_string());
        folder
    };

    let folder = edited(&|index| index["weight_map"][EMBEDDING] = json!(second));
    folder.assert_refused(
        Kind::Malformed,
        &format!("tensor {EMBEDDING} is in {first}, the index says {second}"),
    );
    let folder = edited(&|index| {
        index["weight_map"].as_object_mut().unwrap().shift_remove(EMBEDDING);
    });
    folder.assert_refused(
        Kind::Malformed,
        &format!("tensor {EMBEDDING} is in {first}, the index says in no file"),
    );
    let folder = edited(&|index| index["weight_map"]["extra.weight"] = json!(first));
    folder.assert_refused(
        Kind::Malformed,
        &format!("tensor extra.weight is in no file, the index says {first}"),
    );
    let folder = edited(&|index| index["weight_map"][EMBEDDING] = json!(1));
    folder.assert_refused(
        Kind::Malformed,
        &format!(
            "model.safetensors.index.json: field weight_map.{EMBEDDING} is 1, expected a file name"
        ),
    );
    let folder = edited(&|index| index["format"] = json!("new"));
    folder.assert_refused(
        Kind::Incomplete,
        "model.safetensors.index.json: field format (value \"new\") is not understood",
    );
    let folder = edited(&|index| {
        index.as_object_mut().unwrap().shift_remove("weight_map");
    });
    folder.assert_refused(
        Kind::Malformed,
        "model.safetensors.index.json: field weight_map is missing",
    );
}

#[test]
fn names_what_is_missing() {
    let folder = TestFolder::sharded();
    folder.remove("model-00002-of-00002.safetensors");
    folder.assert_refused(
        Kind::Incomplete,
        "shard model-00002-of-00002.safetensors of 11 tensors is missing from FOLDER",
    );
    let folder = TestFolder::valid();
    folder.remove("model.safetensors");
    folder.assert_refused(
        Kind::Incomplete,
        "FOLDER has neither model.safetensors nor model.safetensors.index.json",
    );
    let folder = TestFolder::sharded();
    folder.write_tensors("model.safetensors", &tensors());
    folder.assert_refused(
        Kind::Incomplete,
        "FOLDER has both model.safetensors and model.safetensors.index.json",
    );
}

#[test]
fn refuses_malformed_safetensors() {
    let valid = file_of(&tensors());
    let mut longer = valid.clone();
    longer.push(0);
    let mut huge = u64::MAX.to_le_bytes().to_vec();
    huge.extend(b"{}");
    let mut above_the_cap = 100_000_001u64.to_le_bytes().to_vec();
    above_the_cap.extend(b"{}");
    let one = |shape: &str, offsets: &str| {
        format!(r#"{{"x":{{"dtype":"BF16","shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    let tensor = r#"{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}"#;
    let twice = format!(r#"{{"x":{tensor},"x":{tensor}}}"#);
    let overlap = r#"{"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"y":{"dtype":"BF16","shape":[2],"data_offsets":[2,6]}}"#;
    // (file, beginning of the reason, why)
    let cases = [
        (Vec::new(), "0 bytes, less than the header's length", "empty"),
        (vec![0; 7], "7 bytes, less than the header's length", "no length"),
        (huge, "header of 18446744073709551615 bytes, more than 100000000", "FF x 8"),
        (above_the_cap, "header of 100000001 bytes, more than 100000000", "one above the cap"),
        (valid[..100].to_vec(), "header of ", "cut in the header"),
        (
            valid[..valid.len() - 1].to_vec(),
            "incomplete metadata, file not fully covered",
            "cut in the data",
        ),
        (longer, "incomplete metadata, file not fully covered", "a trailing byte"),
        (
            raw_file(&one("[1000,1000]", "[0,4]"), 4),
            "invalid shape, data type, or offset",
            "shape beyond the data",
        ),
        (raw_file(&one("[2]", "[4,0]"), 4), "invalid offset for tensor `x`", "offsets reversed"),
        (
            raw_file(&one("[2]", "[2,6]"), 6),
            "invalid offset for tensor `x`",
            "a gap before the data",
        ),
        (
            raw_file(&one("[4294967296,4294967296]", "[0,4]"), 4),
            "overflow computing buffer size",
            "shape overflows",
        ),
        (raw_file(overlap, 6), "invalid offset for tensor `y`", "overlap"),
        (raw_file(&twice, 4), "header: key \"x\" appears twice", "a name twice"),
        (raw_file("{", 0), "header: EOF", "not JSON"),
        (raw_file("[]", 0), "invalid JSON in header", "not an object"),
        (raw_file("{\"\u{0}\":1}", 0), "header: control character", "a raw NUL"),
    ];
    let folder = TestFolder::valid();
    for (file, reason, why) in cases {
        folder.write("model.safetensors", &file);
        let error = attest::model::Model::open(&folder.path()).unwrap_err();
        let message = error.to_string();
        let expected = format!("model.safetensors is not a valid safetensors file: {reason}");
        assert!(message.starts_with(&expected), "{why}: {message}");
        assert_eq!(error.kind(), Kind::Malformed, "{why}");
    }
}

#[test]
fn every_cut_of_a_file_is_refused() {
    let two = ["model.norm.weight", "model.layers.0.input_layernorm.weight"];
    let entries = tensors().into_iter().filter(|(name, _)| two.contains(&name.as_str())).collect();
    let file = file_of(&entries);
    let folder = TestFolder::valid();
    let config = Config::from_json(&folder.read("config.json")).unwrap();
    for length in 0..file.len() {
        folder.write("model.safetensors", &file[..length]);
        let files = Folder::open(&folder.path()).unwrap();
        let error = Weights::open(&files, &config).unwrap_err();
        assert_eq!(error.kind(), Kind::Malformed, "cut at {length}: {error}");
    }
    // Whole, it is only missing the other tensors.
    folder.write("model.safetensors", &file);
    folder.assert_refused(Kind::Incomplete, "tensor model.embed_tokens.weight is missing");
}
