//! The forward pass of Qwen3, written once.
//!
//! This function builds a plan; engines execute it. Names of weights are those
//! of the published checkpoint, names of steps follow them.
//!
//! # Source
//! Qwen3 in Hugging Face transformers 5.17: pre-norm blocks, RMSNorm on every
//! query and key head before RoPE, grouped-query attention, SwiGLU.

use super::Config;
use crate::plan::{CacheSlot, Contract, Half, LOGITS, Op, Pass};
use crate::plan::{Plan, PlanBuilder, PlanError, Step};

/// Builds the plan of one pass.
///
/// The logits are computed for the last token of the pass only: the others'
/// would choose nothing.
///
/// # Errors
/// [`PlanError`] if the pass is empty, the configuration's sizes disagree, or the
/// contract does not know a product of this size.
pub fn forward(config: &Config, contract: Contract<'_>, pass: Pass) -> Result<Plan, PlanError> {
    let hidden = config.hidden_size;
    let inner = config.intermediate_size;
    let head_dim = config.head_dim;
    let (q_heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
    let (q_size, kv_size) = (q_heads * head_dim, kv_heads * head_dim);
    let (eps, theta) = (config.rms_norm_eps, config.rope_theta);

    let mut b = PlanBuilder::new(contract, pass)?;
    let mut x = b.embedding(EMBEDDING, hidden);
    for layer in 0..config.num_hidden_layers {
        b.layer(Some(layer));
        let weight = |name: &str| format!("model.layers.{layer}.{name}.weight");
        let keys = CacheSlot { layer, half: Half::Key };
        let values = CacheSlot { layer, half: Half::Value };

        let name = "input_layernorm";
        let h = b.rms_norm(name, x, &weight(name), eps, hidden)?;

        let name = "self_attn.q_proj";
        let q = b.linear(name, h, &weight(name), (q_size, hidden))?;
        let name = "self_attn.q_norm";
        let q = b.rms_norm(name, q, &weight(name), eps, head_dim)?;
        let q = b.rope("self_attn.q_rope", q, theta, head_dim)?;

        let name = "self_attn.k_proj";
        let k = b.linear(name, h, &weight(name), (kv_size, hidden))?;
        let name = "self_attn.k_norm";
        let k = b.rms_norm(name, k, &weight(name), eps, head_dim)?;
        let k = b.rope("self_attn.k_rope", k, theta, head_dim)?;
        b.keep(k, keys);

        let name = "self_attn.v_proj";
        let v = b.linear(name, h, &weight(name), (kv_size, hidden))?;
        b.keep(v, values);

        let heads = (q_heads, kv_heads, head_dim);
        let a = b.attention("self_attn.attention", q, (keys, values), heads)?;
        let name = "self_attn.o_proj";
        let o = b.linear(name, a, &weight(name), (hidden, q_size))?;
        x = b.add("self_attn.residual", x, o)?;

        let name = "post_attention_layernorm";
        let h = b.rms_norm(name, x, &weight(name), eps, hidden)?;
        let name = "mlp.gate_proj";
        let gate = b.linear(name, h, &weight(name), (inner, hidden))?;
        let name = "mlp.up_proj";
        let up = b.linear(name, h, &weight(name), (inner, hidden))?;
        let h = b.silu_mul("mlp.silu_mul", gate, up)?;
        let name = "mlp.down_proj";
        let down = b.linear(name, h, &weight(name), (hidden, inner))?;
        x = b.add("mlp.residual", x, down)?;
    }
    b.layer(None);
    let last = b.last_token(x);
    let h = b.rms_norm("norm", last, "model.norm.weight", eps, hidden)?;
    let head = if config.tie_word_embeddings { EMBEDDING } else { "lm_head.weight" };
    let logits = b.linear(LOGITS, h, head, (config.vocab_size, hidden))?;
    b.argmax(logits);
    Ok(b.finish())
}

/// Whether a step's output is the output of a layer (or of the embedding), the
/// boundary that a trace of layers records.
pub fn is_layer_output(step: &Step) -> bool {
    step.op == Op::Embedding || (step.layer.is_some() && step.name.ends_with(".mlp.residual"))
}

/// The embedding's weight; also the output head's if the two are tied.
const EMBEDDING: &str = "model.embed_tokens.weight";
