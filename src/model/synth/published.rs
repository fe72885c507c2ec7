//! The shapes that can be synthesised, as their configuration files say them.

use serde_json::{Value, json};

/// A published shape, or the small one of the tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) vocabulary: usize,
    pub(super) hidden: usize,
    pub(super) intermediate: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) key_value_heads: usize,
    pub(super) tied: bool,
    /// Whether there is an `lm_head.weight`; if tied, it equals the embedding.
    pub(super) head: bool,
    pub(super) positions: usize,
    /// `config.json`: end and beginning of text; both end a generation.
    pub(super) end: u32,
    pub(super) beginning: u32,
    /// Most bytes of tensors in a shard.
    pub(super) shard_bytes: u64,
}

impl Shape {
    /// `config.json`, in the order of the published files. `layers` replaces the
    /// number of layers; `name` says what made it, in a field that changes nothing.
    pub(super) fn config(&self, layers: usize, name: &str) -> Value {
        json!({
            "_name_or_path": name,
            "architectures": ["Qwen3ForCausalLM"],
            "attention_bias": false,
            "attention_dropout": 0.0,
            "bos_token_id": self.beginning,
            "eos_token_id": self.end,
            "head_dim": 128,
            "hidden_act": "silu",
            "hidden_size": self.hidden,
            "initializer_range": 0.02,
            "intermediate_size": self.intermediate,
            "max_position_embeddings": self.positions,
            "max_window_layers": layers,
            "model_type": "qwen3",
            "num_attention_heads": self.heads,
            "num_hidden_layers": layers,
            "num_key_value_heads": self.key_value_heads,
            "rms_norm_eps": 1e-6,
            "rope_scaling": null,
            "rope_theta": 1_000_000,
            "sliding_window": null,
            "tie_word_embeddings": self.tied,
            "torch_dtype": "bfloat16",
            "transformers_version": "4.51.0",
            "use_cache": true,
            "use_sliding_window": false,
            "vocab_size": self.vocabulary,
        })
    }

    /// `generation_config.json`, as published.
    pub(super) fn generation(&self) -> Value {
        json!({
            "bos_token_id": self.beginning,
            "do_sample": true,
            "eos_token_id": [self.end, self.beginning],
            "pad_token_id": self.beginning,
            "temperature": 0.6,
            "top_k": 20,
            "top_p": 0.95,
            "transformers_version": "4.51.0",
        })
    }
}

/// What the four published shapes have in common.
const PUBLISHED: Shape = Shape {
    name: "",
    vocabulary: 151_936,
    hidden: 0,
    intermediate: 0,
    layers: 0,
    heads: 0,
    key_value_heads: 8,
    tied: true,
    head: false,
    positions: 40_960,
    end: 151_645,
    beginning: 151_643,
    shard_bytes: 4_000_000_000,
};

/// Every shape, by name.
///
/// # Source
/// `config.json` of Qwen/Qwen3-0.6B, -1.7B, -4B and -8B on Hugging Face; which of
/// them have an `lm_head.weight`, from the lengths of their weight files.
pub(super) const SHAPES: [Shape; 5] = [
    Shape {
        name: "qwen3-0.6b",
        hidden: 1024,
        intermediate: 3072,
        layers: 28,
        heads: 16,
        head: true,
        ..PUBLISHED
    },
    Shape {
        name: "qwen3-1.7b",
        hidden: 2048,
        intermediate: 6144,
        layers: 28,
        heads: 16,
        head: true,
        ..PUBLISHED
    },
    Shape {
        name: "qwen3-4b",
        hidden: 2560,
        intermediate: 9728,
        layers: 36,
        heads: 32,
        ..PUBLISHED
    },
    Shape {
        name: "qwen3-8b",
        hidden: 4096,
        intermediate: 12_288,
        layers: 36,
        heads: 32,
        tied: false,
        head: true,
        ..PUBLISHED
    },
    // The same structure in 4 MB and three shards; its vocabulary fits the
    // tokenizer of `examples/tiny`.
    Shape {
        name: "qwen3-test",
        vocabulary: 1536,
        hidden: 256,
        intermediate: 512,
        layers: 2,
        heads: 4,
        key_value_heads: 2,
        tied: true,
        head: false,
        positions: 1024,
        end: 0,
        beginning: 1,
        shard_bytes: 1_600_000,
    },
];
