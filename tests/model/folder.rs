//! A small valid model folder, to be broken by the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use attest::model::{Kind, Model};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use tempfile::TempDir;

/// One tensor of a file to be written.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Entry {
    pub(crate) fn bf16(shape: &[usize], seed: u64) -> Self {
        let mut state = seed.wrapping_mul(2) + 1;
        let count: usize = shape.iter().product();
        let mut bytes = Vec::new();
        for _ in 0..count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.extend(&state.to_le_bytes()[6..]);
        }
        Self { dtype: Dtype::BF16, shape: shape.to_vec(), bytes }
    }
}

/// Tensors of a file by name.
pub(crate) type Entries = BTreeMap<String, Entry>;

/// A model folder in a temporary place.
pub(crate) struct TestFolder {
    root: TempDir,
    /// Where the model is, below the temporary place.
    below: PathBuf,
}

impl TestFolder {
    /// A whole model of two layers: one weight file, tied embedding.
    pub(crate) fn valid() -> Self {
        Self::valid_below("Tiny")
    }

    /// The same, in a folder of the given path below a temporary place.
    pub(crate) fn valid_below(below: &str) -> Self {
        let folder = Self { root: TempDir::new().unwrap(), below: below.into() };
        fs::create_dir_all(folder.path()).unwrap();
        folder.write("config.json", config().to_string());
        folder.write("generation_config.json", r#"{"eos_token_id": [3, 1], "top_k": 20}"#);
        folder.write("tokenizer.json", TOKENIZER);
        folder.write_tensors("model.safetensors", &tensors());
        folder
    }

    /// The same with two shards and an index: layer 1 apart from the rest.
    pub(crate) fn sharded() -> Self {
        let folder = Self::valid();
        folder.remove("model.safetensors");
        let all = tensors();
        let second = |name: &str| name.contains("layers.1.");
        let part = |want: bool| -> Entries {
            all.iter()
                .filter(|(n, _)| second(n) == want)
                .map(|(n, e)| (n.clone(), e.clone()))
                .collect()
        };
        folder.write_tensors("model-00001-of-00002.safetensors", &part(false));
        folder.write_tensors("model-00002-of-00002.safetensors", &part(true));
        let map: BTreeMap<_, _> = all
            .keys()
            .map(|n| (n, format!("model-0000{}-of-00002.safetensors", 1 + u8::from(second(n)))))
            .collect();
        let index = json!({"metadata": {"total_size": 1}, "weight_map": map});
        folder.write("model.safetensors.index.json", index.to_string());
        folder
    }

    pub(crate) fn path(&self) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap().join(&self.below)
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap()
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join(name)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path().join(name), content).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path().join(name)).unwrap();
    }

    pub(crate) fn write_tensors(&self, name: &str, entries: &Entries) {
        self.write(name, file_of(entries));
    }

    /// Sets one field of `config.json`.
    pub(crate) fn set(&self, field: &str, value: Value) {
        let mut config: Value = serde_json::from_slice(&self.read("config.json")).unwrap();
        config[field] = value;
        self.write("config.json", config.to_string());
    }

    /// Removes one field of `config.json`.
    pub(crate) fn unset(&self, field: &str) {
        let mut config: Value = serde_json::from_slice(&self.read("config.json")).unwrap();
        config.as_object_mut().unwrap().shift_remove(field).unwrap();
        self.write("config.json", config.to_string());
    }

    pub(crate) fn open(&self) -> Model {
        Model::open(&self.path()).unwrap()
    }

    /// Asserts the whole message, with `FOLDER` for the folder, and its kind.
    pub(crate) fn assert_refused(&self, kind: Kind, message: &str) {
        let path = self.path();
        let error = match Model::open(&path) {
            Ok(_) => panic!("accepted, expected: {message}"),
            Err(error) => error,
        };
        assert_eq!(error.to_string().replace(text(&path), "FOLDER"), message);
        assert_eq!(error.kind(), kind, "{message}");
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(crate) fn file_of(entries: &Entries) -> Vec<u8> {
    let views = entries
        .iter()
        .map(|(n, e)| (n.clone(), TensorView::new(e.dtype, e.shape.clone(), &e.bytes).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

/// A file with exactly this header, padded with nothing.
pub(crate) fn raw_file(header: &str, data_bytes: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + data_bytes, 0);
    file
}

/// `config.json` as transformers 4 writes it, sizes apart.
pub(crate) fn config() -> Value {
    json!({
        "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
        "bos_token_id": 1, "eos_token_id": 2, "head_dim": 128, "hidden_act": "silu",
        "hidden_size": 128, "initializer_range": 0.02, "intermediate_size": 24,
        "max_position_embeddings": 64, "max_window_layers": 2, "model_type": "qwen3",
        "num_attention_heads": 2, "num_hidden_layers": 2, "num_key_value_heads": 1,
        "rms_norm_eps": 1e-6, "rope_scaling": null, "rope_theta": 10000,
        "sliding_window": null, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
        "transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false,
        "vocab_size": 8
    })
}

/// Every tensor of [`config`], with the shapes written out.
pub(crate) fn tensors() -> Entries {
    let mut shapes: Vec<(String, Vec<usize>)> = vec![
        ("model.embed_tokens.weight".into(), vec![8, 128]),
        ("model.norm.weight".into(), vec![128]),
    ];
    for layer in 0..2 {
        for (name, shape) in [
            ("input_layernorm", vec![128]),
            ("mlp.down_proj", vec![128, 24]),
            ("mlp.gate_proj", vec![24, 128]),
            ("mlp.up_proj", vec![24, 128]),
            ("post_attention_layernorm", vec![128]),
            ("self_attn.k_norm", vec![128]),
            ("self_attn.k_proj", vec![128, 128]),
            ("self_attn.o_proj", vec![128, 256]),
            ("self_attn.q_norm", vec![128]),
            ("self_attn.q_proj", vec![256, 128]),
            ("self_attn.v_proj", vec![128, 128]),
        ] {
            shapes.push((format!("model.layers.{layer}.{name}.weight"), shape));
        }
    }
    let entry = |(seed, (name, shape)): (usize, (String, Vec<usize>))| {
        (name, Entry::bf16(&shape, seed as u64))
    };
    shapes.into_iter().enumerate().map(entry).collect()
}

/// A byte-pair tokenizer of `a`, `b`, `ab` and a special token.
pub(crate) const TOKENIZER: &str = r#"{
 "version": "1.0", "truncation": null, "padding": null, "normalizer": {"type": "NFC"},
 "added_tokens": [{"id": 3, "content": "<|end|>", "single_word": false, "lstrip": false,
                   "rstrip": false, "normalized": false, "special": true}],
 "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "ByteLevel",
 "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
}"#;
