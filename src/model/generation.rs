//! `generation_config.json`: the stop rule, and sampling fields as recorded.

use std::collections::BTreeMap;

use serde_json::Value;

use super::config::Fields;
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
        Ok(Self { eos_token_id, recorded: sorted_keys(Value::Object(fields.map)).to_string() })
    }

    /// The rule where the file is absent: the ids of `config.json`.
    pub fn without_file(config: &Config) -> Self {
        Self { eos_token_id: config.eos_token_id.clone(), recorded: "{}".into() }
    }

    /// True if `id` ends a generation.
    pub fn ends_with(&self, id: u32) -> bool {
        self.eos_token_id.contains(&id)
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
