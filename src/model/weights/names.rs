//! The tensors of a Qwen3 checkpoint, by published name and shape.

use super::{EMBEDDING, OUTPUT};
use crate::model::Config;

/// Lists every tensor of the architecture with its shape, `lm_head.weight`
/// last (it is optional where the embedding is tied).
///
/// # Shape
/// Projections are `[out, in]`; norms are vectors.
pub fn architecture(config: &Config) -> impl Iterator<Item = (String, Vec<usize>)> {
    let hidden = config.hidden_size;
    let table = vec![config.vocab_size, hidden];
    let layer_tensors = layer(config);
    let layers = (0..config.num_hidden_layers).flat_map(move |index| {
        let named = move |(name, shape): &(&str, Vec<usize>)| {
            (format!("model.layers.{index}.{name}.weight"), shape.clone())
        };
        layer_tensors.iter().map(named).collect::<Vec<_>>()
    });
    std::iter::once((EMBEDDING.to_owned(), table.clone()))
        .chain(layers)
        .chain([("model.norm.weight".to_owned(), vec![hidden]), (OUTPUT.to_owned(), table)])
}

fn layer(config: &Config) -> [(&'static str, Vec<usize>); 11] {
    let (hidden, inner) = (config.hidden_size, config.intermediate_size);
    let (query, key_value) = (config.query_size(), config.key_value_size());
    [
        ("input_layernorm", vec![hidden]),
        ("self_attn.q_proj", vec![query, hidden]),
        ("self_attn.k_proj", vec![key_value, hidden]),
        ("self_attn.v_proj", vec![key_value, hidden]),
        ("self_attn.q_norm", vec![config.head_dim]),
        ("self_attn.k_norm", vec![config.head_dim]),
        ("self_attn.o_proj", vec![hidden, query]),
        ("post_attention_layernorm", vec![hidden]),
        ("mlp.gate_proj", vec![inner, hidden]),
        ("mlp.up_proj", vec![inner, hidden]),
        ("mlp.down_proj", vec![hidden, inner]),
    ]
}
