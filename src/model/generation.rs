//! `generation_config.json`: the stop rule, and sampling fields as recorded.

use std::collections::BTreeMap;

use serde_json::Value;

use super::config::{Fields, short};
use super::{Config, ModelError, json};

/// What the publisher says about generating with the model.
///
/// Only the end-of-text ids are applied. The other fields are kept for the
/// record; decoding is greedy whatever they say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generation {
    /// Ids that end a generation, in the file's order.
    pub eos_token_id: Vec<u32>,
    /// The other fields as one JSON object: keys sorted, no white space. `{}`
    /// if there is no file.
    pub recorded: String,
    /// Those of the recorded fields with which greedy decoding may give other
    /// tokens in a tool that applies them, as `name value`, in the file's order.
    pub not_applied: Vec<String>,
}

impl Generation {
    /// Reads the text of a `generation_config.json`. If it names no end-of-text
    /// ids, those of `config.json` count.
    ///
    /// # Errors
    /// [`ModelError`] if it is not valid, or an id is outside the vocabulary.
    pub fn from_json(bytes: &[u8], config: &Config) -> Result<Self, ModelError> {
        let mut fields = Fields { file: FILE, map: json::object(FILE, bytes)? };
        let mut eos_token_id = fields.token_ids(EOS)?;
        if eos_token_id.iter().any(|&id| id as usize >= config.vocab_size) {
            return Err(fields.invalid(EOS, &format!("ids below vocab_size {}", config.vocab_size)));
        }
        if eos_token_id.is_empty() {
            eos_token_id.clone_from(&config.eos_token_id);
        }
        fields.map.remove(EOS);
        let not_applied = fields
            .map
            .iter()
            .filter(|(name, value)| changes_greedy(name, value))
            .map(|(name, value)| format!("{name} {}", short(value)))
            .collect();
        let recorded = sorted_keys(Value::Object(fields.map)).to_string();
        Ok(Self { eos_token_id, recorded, not_applied })
    }

    /// The rule where the file is absent: the ids of `config.json`.
    pub fn without_file(config: &Config) -> Self {
        let (recorded, not_applied) = ("{}".into(), Vec::new());
        Self { eos_token_id: config.eos_token_id.clone(), recorded, not_applied }
    }

    /// What to say of the fields that are not applied, if there are any.
    pub fn warning(&self) -> Option<String> {
        let fields = self.not_applied.join(", ");
        (!fields.is_empty()).then(|| {
            format!(
                "{FILE} sets {fields}: recorded, not applied; greedy text of other tools may differ"
            )
        })
    }

    /// True if `id` ends a generation.
    pub fn ends_with(&self, id: u32) -> bool {
        self.eos_token_id.contains(&id)
    }
}

/// True if a tool that applies the field may choose or end otherwise, though it
/// takes the largest logit.
fn changes_greedy(name: &str, value: &Value) -> bool {
    let Some((_, neutral)) = GREEDY_FIELDS.iter().find(|(field, _)| *field == name) else {
        return false;
    };
    match value {
        Value::Null => false,
        Value::Number(number) => number.as_f64() != neutral.map(f64::from),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
        Value::Bool(_) | Value::String(_) => true,
    }
}

/// Sorts the keys of every object by code point.
fn sorted_keys(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> =
                map.into_iter().map(|(k, v)| (k, sorted_keys(v))).collect();
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted_keys).collect()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

const FILE: &str = "generation_config.json";
const EOS: &str = "eos_token_id";

/// Fields that change greedy decoding, with the number that means "off" where
/// there is one; null and an empty list always do.
///
/// # Source
/// Fields documented for `GenerationConfig` of Hugging Face transformers. The list
/// serves a warning and decides nothing: no field is applied either way. Fields of
/// sampling alone (`temperature`, `top_k`, …) are not here.
const GREEDY_FIELDS: [(&str, Option<i32>); 22] = [
    ("repetition_penalty", Some(1)),
    ("encoder_repetition_penalty", Some(1)),
    ("no_repeat_ngram_size", Some(0)),
    ("encoder_no_repeat_ngram_size", Some(0)),
    ("bad_words_ids", None),
    ("force_words_ids", None),
    ("constraints", None),
    ("sequence_bias", None),
    ("suppress_tokens", None),
    ("begin_suppress_tokens", None),
    ("forced_bos_token_id", None),
    ("forced_eos_token_id", None),
    ("exponential_decay_length_penalty", None),
    ("min_length", Some(0)),
    ("min_new_tokens", Some(0)),
    ("stop_strings", None),
    ("num_beams", Some(1)),
    ("num_beam_groups", Some(1)),
    ("penalty_alpha", Some(0)),
    ("dola_layers", None),
    ("guidance_scale", Some(1)),
    ("watermarking_config", None),
];
