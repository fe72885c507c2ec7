//! The forward pass of Qwen3, written once.
//!
//! This function builds a plan; engines execute it. Names of weights are those
//! of the published checkpoint, names of steps follow them.
//!
//! # Source
//! Qwen3 in Hugging Face transformers 5.17: pre-norm blocks, RMSNorm on every
//! query and key head before RoPE, grouped-query attention, SwiGLU.

use super::Config;
use crate::num::F32;
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

/// Layer and name of a step, known from the number of steps alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Layer it belongs to, if any.
    pub layer: Option<usize>,
    /// Its name.
    pub name: String,
}

/// Says what step `index` is in a plan of `steps` steps: all plans of this
/// architecture with as many layers have the same names. `None` if no plan has so many
/// steps, or the index is none of theirs.
pub fn step_of(steps: usize, index: usize) -> Option<Named> {
    // Any sizes that fit each other do: names do not depend on them.
    let config = Config {
        vocab_size: 1,
        hidden_size: 128,
        intermediate_size: 128,
        num_hidden_layers: 1,
        num_attention_heads: 1,
        num_key_value_heads: 1,
        head_dim: 128,
        rms_norm_eps: F32::ZERO,
        rope_theta: 1,
        max_position_embeddings: 1,
        tie_word_embeddings: true,
        eos_token_id: Vec::new(),
    };
    let plan = forward(&config, Contract::Native, Pass::alone(0, 0, 1)).ok()?;
    let first = plan.steps.iter().position(|step| step.layer.is_some())?;
    let height = plan.steps.iter().filter(|step| step.layer.is_some()).count();
    let layered = steps.checked_sub(plan.steps.len() - height)?;
    if layered == 0 || !layered.is_multiple_of(height) || index >= steps {
        return None;
    }
    let (layer, own) = match index.checked_sub(first) {
        Some(within) if within < layered => (Some(within / height), first + within % height),
        Some(within) => (None, first + height + within - layered),
        None => (None, index),
    };
    let name = &plan.steps.get(own)?.name;
    let name = match layer {
        Some(layer) => name.replacen("layers.0.", &format!("layers.{layer}."), 1),
        None => name.clone(),
    };
    Some(Named { layer, name })
}

/// Says what row `within` is of those that a trace of cells has of a position, which are
/// `rows`: what each layer keeps, then what it hands on. `None` if no plan has so many.
pub fn row_of_cells(rows: usize, within: usize) -> Option<Named> {
    const OF_A_LAYER: [&str; 3] = ["self_attn.k_rope", "self_attn.v_proj", "mlp.residual"];
    let whole = rows > 0 && rows.is_multiple_of(OF_A_LAYER.len()) && within < rows;
    let layer = within / OF_A_LAYER.len();
    let name = format!("layers.{layer}.{}", OF_A_LAYER[within % OF_A_LAYER.len()]);
    whole.then_some(Named { layer: Some(layer), name })
}

/// The embedding's weight; also the output head's if the two are tied.
const EMBEDDING: &str = "model.embed_tokens.weight";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_the_number_of_steps() {
        let text = include_bytes!("../../examples/tiny/model/config.json");
        let mut config = Config::from_json(text).unwrap();
        for layers in [1, 2, 5] {
            config.num_hidden_layers = layers;
            let plan = forward(&config, Contract::Native, Pass::alone(0, 0, 3)).unwrap();
            let steps = plan.steps.len();
            for (index, step) in plan.steps.iter().enumerate() {
                let named = Named { layer: step.layer, name: step.name.clone() };
                assert_eq!(step_of(steps, index), Some(named), "{index} of {steps}");
            }
            assert_eq!(step_of(steps, steps), None);
            assert_eq!(step_of(steps + 1, 0), None, "no plan has one step more");
        }
        assert_eq!(step_of(0, 0), None);
        assert_eq!(step_of(5, 0), None, "no plan is without layers");
    }
}
