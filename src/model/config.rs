//! `config.json` of a Qwen3 model, refused if a field is not understood.
//!
//! A field that is ignored may change the computation, so every field is on one
//! of three lists: read, required to have the one value that is modelled, or
//! known to change nothing.

use serde_json::{Map, Value};

use super::ModelError;
use super::json;
use crate::num::F32;
use crate::recipe::rope::InverseFrequencies;
use crate::recipe::{RecipeError, RowReduction};

/// The architecture of one Qwen3 model. Fields have their published names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Rows of the embedding (token ids).
    pub vocab_size: usize,
    /// Width of the residual stream (elements).
    pub hidden_size: usize,
    /// Width of the MLP (elements).
    pub intermediate_size: usize,
    /// Decoder layers (count).
    pub num_hidden_layers: usize,
    /// Query heads (count).
    pub num_attention_heads: usize,
    /// Key and value heads (count); divides the query heads.
    pub num_key_value_heads: usize,
    /// Width of one head (elements); always 128.
    pub head_dim: usize,
    /// Added to the mean square in RMSNorm.
    pub rms_norm_eps: F32,
    /// Base of the rotary frequencies.
    pub rope_theta: u64,
    /// Longest context (tokens).
    pub max_position_embeddings: usize,
    /// True if the output matrix is the embedding.
    pub tie_word_embeddings: bool,
    /// End-of-text ids, used where `generation_config.json` names none.
    pub eos_token_id: Vec<u32>,
}

impl Config {
    /// Reads and checks the text of a `config.json`.
    ///
    /// # Errors
    /// [`ModelError`] naming the first field, in file order, that is not
    /// understood; then any that is missing or has an impossible value.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ModelError> {
        let fields = Fields { file: FILE, map: json::object(FILE, bytes)? };
        // The type comes first: of another model, every field would look wrong.
        fields.only("model_type", &["qwen3"])?;
        for (name, value) in &fields.map {
            fields.check(name, value)?;
        }
        let config = Self {
            vocab_size: fields.size("vocab_size", MAX_VOCABULARY)?,
            hidden_size: fields.size("hidden_size", MAX_WIDTH)?,
            intermediate_size: fields.size("intermediate_size", MAX_WIDTH)?,
            num_hidden_layers: fields.size("num_hidden_layers", MAX_LAYERS)?,
            num_attention_heads: fields.size("num_attention_heads", MAX_HEADS)?,
            num_key_value_heads: fields.size("num_key_value_heads", MAX_HEADS)?,
            head_dim: fields.size("head_dim", MAX_WIDTH)?,
            rms_norm_eps: fields.positive_f32("rms_norm_eps")?,
            rope_theta: fields.rope_theta()?,
            max_position_embeddings: fields.size("max_position_embeddings", MAX_POSITIONS)?,
            tie_word_embeddings: fields.bool("tie_word_embeddings")?,
            eos_token_id: fields.token_ids("eos_token_id")?,
        };
        fields.only("hidden_act", &["silu"])?;
        fields.require_dtype()?;
        config.check(&fields)?;
        Ok(config)
    }

    /// Width of all query heads together (elements).
    pub fn query_size(&self) -> usize {
        self.num_attention_heads * self.head_dim
    }

    /// Width of all key heads, and of all value heads, together (elements).
    pub fn key_value_size(&self) -> usize {
        self.num_key_value_heads * self.head_dim
    }

    fn check(&self, fields: &Fields) -> Result<(), ModelError> {
        if self.head_dim != HEAD_DIM {
            return Err(fields.unsupported("head_dim", &HEAD_DIM.to_string()));
        }
        if !RowReduction::covers(self.hidden_size) {
            return Err(fields.unsupported("hidden_size", "a multiple of 4 from 128 on"));
        }
        if !self.num_attention_heads.is_multiple_of(self.num_key_value_heads) {
            let expected = format!("a divisor of num_attention_heads {}", self.num_attention_heads);
            return Err(fields.invalid("num_key_value_heads", &expected));
        }
        if self.eos_token_id.iter().any(|&id| id as usize >= self.vocab_size) {
            let expected = format!("ids below vocab_size {}", self.vocab_size);
            return Err(fields.invalid("eos_token_id", &expected));
        }
        if let Some(types) = fields.map.get("layer_types").and_then(Value::as_array)
            && types.len() != self.num_hidden_layers
        {
            let expected = format!("one entry for each of {} layers", self.num_hidden_layers);
            return Err(fields.invalid("layer_types", &expected));
        }
        Ok(())
    }
}

/// A JSON object of a file, with errors that name the field and its value.
pub(super) struct Fields {
    pub(super) file: &'static str,
    pub(super) map: Map<String, Value>,
}

impl Fields {
    /// Puts one field on its list. Values of fields that are read are checked
    /// where they are read.
    fn check(&self, name: &str, value: &Value) -> Result<(), ModelError> {
        match name {
            "vocab_size"
            | "hidden_size"
            | "intermediate_size"
            | "num_hidden_layers"
            | "num_attention_heads"
            | "num_key_value_heads"
            | "head_dim"
            | "rms_norm_eps"
            | "rope_theta"
            | "max_position_embeddings"
            | "tie_word_embeddings"
            | "eos_token_id"
            | "model_type" => Ok(()),

            "hidden_act" => self.only(name, &["silu"]),
            // Older files say torch_dtype, newer ones dtype.
            "dtype" | "torch_dtype" => self.only(name, &["bfloat16"]),
            "attention_bias" | "use_sliding_window" => {
                self.require(name, value == &Value::Bool(false), "false")
            }
            "attention_dropout" => self.require(name, value.as_f64() == Some(0.0), "0"),
            "architectures" => self.require(
                name,
                value == &Value::from(vec!["Qwen3ForCausalLM"]),
                "[\"Qwen3ForCausalLM\"]",
            ),
            "layer_types" => {
                let full = |v: &Value| v == "full_attention";
                let all = value.as_array().is_some_and(|types| types.iter().all(full));
                self.require(name, value.is_null() || all, "a list of \"full_attention\"")
            }
            "rope_scaling" | "rope_parameters" => self.check_rope(name, value),
            "quantization_config" | "compression_config" => Err(self.quantised(name, value)),

            // Beginning-of-text and padding ids are for the caller of a
            // tokenizer; the initializer range is for training; the cache
            // changes when keys are computed, not what they are. The window
            // fields are read only if use_sliding_window is true (`Qwen3Config`
            // of transformers), which is refused above.
            "bos_token_id"
            | "pad_token_id"
            | "initializer_range"
            | "use_cache"
            | "transformers_version"
            | "_name_or_path"
            | "sliding_window"
            | "max_window_layers" => Ok(()),

            unknown => Err(ModelError::UnknownField {
                file: self.file.into(),
                field: unknown.into(),
                value: short(value),
            }),
        }
    }

    /// Accepts plain rotary embedding only, in the spellings of transformers 4
    /// (`rope_scaling`) and 5 (`rope_parameters`).
    fn check_rope(&self, name: &str, value: &Value) -> Result<(), ModelError> {
        let rope = match value {
            Value::Null => return Ok(()),
            Value::Object(rope) => rope,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(self.invalid(name, "an object or null"));
            }
        };
        for (key, inner) in rope {
            let field = format!("{name}.{key}");
            match key.as_str() {
                "rope_type" | "type" if inner == "default" => {}
                "rope_type" | "type" => {
                    return Err(ModelError::UnsupportedField {
                        file: self.file.into(),
                        field,
                        value: short(inner),
                        supported: "\"default\"".into(),
                    });
                }
                "rope_theta" => {}
                _ => {
                    return Err(ModelError::UnknownField {
                        file: self.file.into(),
                        field,
                        value: short(inner),
                    });
                }
            }
        }
        Ok(())
    }

    /// Names the method, where the field says one: the weights are then codes of it.
    fn quantised(&self, name: &str, value: &Value) -> ModelError {
        let (field, value) = match value.get("quant_method") {
            Some(method) => (format!("{name}.quant_method"), method),
            None => (name.to_owned(), value),
        };
        let supported = "bf16 without quantisation".into();
        ModelError::UnsupportedField {
            file: self.file.into(),
            field,
            value: short(value),
            supported,
        }
    }

    /// Finds the base wherever this version of transformers writes it; all
    /// places that have one must agree.
    fn rope_theta(&self) -> Result<u64, ModelError> {
        let inner = |name: &str| self.map.get(name).and_then(|v| v.get("rope_theta"));
        let places = [
            ("rope_theta", self.map.get("rope_theta")),
            ("rope_parameters.rope_theta", inner("rope_parameters")),
            ("rope_scaling.rope_theta", inner("rope_scaling")),
        ];
        let mut found = None;
        for (name, value) in places {
            let Some(value) = value else { continue };
            let invalid = |expected: String| ModelError::InvalidField {
                file: self.file.into(),
                field: name.into(),
                value: short(value),
                expected,
            };
            let theta = whole_number(value)
                .filter(|&theta| theta > 1)
                .ok_or_else(|| invalid("a whole number above 1".into()))?;
            if let Some(other) = found.filter(|&other| other != theta) {
                return Err(invalid(format!("{other} as in another field")));
            }
            // Here, and not in the middle of a run, which needs the frequencies.
            if let Err(RecipeError::RopeTheta { known: supported, .. }) =
                InverseFrequencies::for_theta(theta, HEAD_DIM)
            {
                let (file, field, value) = (self.file.into(), name.into(), short(value));
                return Err(ModelError::UnsupportedField { file, field, value, supported });
            }
            found = Some(theta);
        }
        found.ok_or_else(|| self.missing("rope_theta"))
    }

    /// The type of the stored weights is the type they are computed in; without
    /// it, readers differ.
    fn require_dtype(&self) -> Result<(), ModelError> {
        if self.map.contains_key("dtype") || self.map.contains_key("torch_dtype") {
            return Ok(());
        }
        Err(self.missing("dtype"))
    }

    fn only(&self, name: &str, supported: &[&str]) -> Result<(), ModelError> {
        let value = self.present(name)?;
        let known = value.as_str().is_some_and(|v| supported.contains(&v));
        self.require(name, known, &format!("\"{}\"", supported.join("\" or \"")))
    }

    fn require(&self, name: &str, holds: bool, supported: &str) -> Result<(), ModelError> {
        if holds { Ok(()) } else { Err(self.unsupported(name, supported)) }
    }

    fn size(&self, name: &str, limit: u32) -> Result<usize, ModelError> {
        match self.present(name)?.as_u64() {
            Some(v) if v > u64::from(limit) => {
                Err(self.unsupported(name, &format!("a size up to {limit}")))
            }
            Some(v @ 1..) => Ok(v as usize),
            Some(0) | None => Err(self.invalid(name, "a whole number from 1 on")),
        }
    }

    fn bool(&self, name: &str) -> Result<bool, ModelError> {
        self.present(name)?.as_bool().ok_or_else(|| self.invalid(name, "true or false"))
    }

    /// Reads a decimal the way PyTorch gets it: rounded to binary64 by Python,
    /// then to binary32.
    ///
    /// serde_json may miss the nearest binary64 by its last place. Where that
    /// could decide the binary32, the field is refused, so the result never
    /// depends on it.
    fn positive_f32(&self, name: &str) -> Result<F32, ModelError> {
        let value = self.present(name)?.as_f64();
        let Some(wide) = value.filter(|&v| v > 0.0 && v < 1.0) else {
            return Err(self.invalid(name, "a number between 0 and 1"));
        };
        let narrow = wide as f32;
        let same = |neighbour: f64| (neighbour as f32).to_bits() == narrow.to_bits();
        let certain = same(wide.next_down().next_down()) && same(wide.next_up().next_up());
        if !certain || !narrow.is_normal() {
            return Err(self.invalid(name, "a decimal that is not half-way between two binary32"));
        }
        Ok(F32::from_host(narrow))
    }

    /// Reads one id, a list of ids, or nothing.
    pub(super) fn token_ids(&self, name: &str) -> Result<Vec<u32>, ModelError> {
        let expected = "a token id, or a list of them";
        let id = |v: &Value| v.as_u64().and_then(|v| u32::try_from(v).ok());
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(ids)) => {
                ids.iter().map(|v| id(v).ok_or_else(|| self.invalid(name, expected))).collect()
            }
            Some(one) => Ok(vec![id(one).ok_or_else(|| self.invalid(name, expected))?]),
        }
    }

    fn present(&self, name: &str) -> Result<&Value, ModelError> {
        self.map.get(name).ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &str) -> ModelError {
        ModelError::MissingField { file: self.file.into(), field: name.into() }
    }

    pub(super) fn invalid(&self, name: &str, expected: &str) -> ModelError {
        ModelError::InvalidField {
            file: self.file.into(),
            field: name.into(),
            value: self.map.get(name).map_or_else(|| "absent".into(), short),
            expected: expected.into(),
        }
    }

    fn unsupported(&self, name: &str, supported: &str) -> ModelError {
        ModelError::UnsupportedField {
            file: self.file.into(),
            field: name.into(),
            value: self.map.get(name).map_or_else(|| "absent".into(), short),
            supported: supported.into(),
        }
    }
}

/// A whole number in either JSON spelling (`10000` or `10000.0`).
fn whole_number(value: &Value) -> Option<u64> {
    let float = || {
        let v = value.as_f64()?;
        // Below 2^53 every whole binary64 is one integer, so the cast is exact.
        ((0.0..9_007_199_254_740_992.0).contains(&v) && v.fract() == 0.0).then_some(v as u64)
    };
    value.as_u64().or_else(float)
}

/// A value as JSON, cut to fit a message.
pub(super) fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

const FILE: &str = "config.json";

/// The head width whose attention and rotary recipes are measured (`spec/ops.md`).
const HEAD_DIM: usize = 128;

/// Layers that a plan is made for: 17 steps each, with their names in memory.
/// The largest dense Qwen3 has 64.
const MAX_LAYERS: u32 = 1024;

/// Widths of a row (elements) and the ids of a vocabulary: far above any
/// published model, and products of two stay far below 2^63.
const MAX_WIDTH: u32 = 1 << 20;
const MAX_VOCABULARY: u32 = 1 << 24;

/// Heads of a layer; with a head of 128, as wide as any row may be.
const MAX_HEADS: u32 = MAX_WIDTH / 128;

/// Positions that are exact in binary32 (`spec/ops.md`, rope, C3).
const MAX_POSITIONS: u32 = 1 << 24;
