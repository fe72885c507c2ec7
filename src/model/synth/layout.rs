//! Which shard has which tensor, and the bytes around them.

use serde_json::{Map, Value, json};

use crate::model::weights::EMBEDDING;

/// A tensor of a shard.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
}

impl Entry {
    /// Bytes of its elements.
    pub(super) fn len_bytes(&self) -> u64 {
        2 * self.shape.iter().map(|&d| d as u64).product::<u64>()
    }
}

/// Fills shards with tensors in the order of the model's modules, none above
/// `limit_bytes` unless one tensor is; in a shard, tensors are sorted by name.
///
/// # Source
/// Hugging Face's writers split this way; the shards of the published Qwen3 have
/// the same lengths to the byte (the tests have them).
pub(super) fn split(mut tensors: Vec<Entry>, limit_bytes: u64) -> Vec<Vec<Entry>> {
    let mut shards: Vec<Vec<Entry>> = Vec::new();
    let mut room = 0;
    tensors.sort_by_key(|tensor| module(&tensor.name));
    for tensor in tensors {
        let len_bytes = tensor.len_bytes();
        match shards.last_mut() {
            Some(shard) if len_bytes <= room => {
                room -= len_bytes;
                shard.push(tensor);
            }
            _ => {
                room = limit_bytes.saturating_sub(len_bytes);
                shards.push(vec![tensor]);
            }
        }
    }
    for shard in &mut shards {
        shard.sort_by(|a, b| a.name.cmp(&b.name));
    }
    shards
}

/// Where a tensor's module stands: the embedding, the layers, the rest.
fn module(name: &str) -> (usize, usize) {
    let in_layer = |rest: &str| {
        let (layer, name) = rest.split_once('.')?;
        let name = name.strip_suffix(".weight")?;
        let place = MODULES.iter().position(|module| *module == name)?;
        Some((1 + layer.parse::<usize>().ok()?, place))
    };
    match name.strip_prefix("model.layers.").and_then(in_layer) {
        Some(place) => place,
        None if name == EMBEDDING => (0, 0),
        None => (usize::MAX, 0),
    }
}

/// The name of one shard of `count`.
pub(super) fn shard_name(index: usize, count: usize) -> String {
    match count {
        1 => "model.safetensors".into(),
        _ => format!("model-{:05}-of-{count:05}.safetensors", index + 1),
    }
}

/// The header of a safetensors file: its length, then JSON, padded with spaces
/// to a multiple of eight bytes so that every element is aligned.
pub(super) fn header(shard: &[Entry]) -> Vec<u8> {
    let mut fields = Map::new();
    // Readers of transformers ask for it.
    fields.insert("__metadata__".into(), json!({ "format": "pt" }));
    let mut start = 0;
    for tensor in shard {
        let end = start + tensor.len_bytes();
        let place = json!({ "dtype": "BF16", "shape": tensor.shape, "data_offsets": [start, end] });
        fields.insert(tensor.name.clone(), place);
        start = end;
    }
    let mut text = Value::Object(fields).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut header = (text.len() as u64).to_le_bytes().to_vec();
    header.extend(text);
    header
}

/// The index file: for every tensor, by name, its shard.
pub(super) fn index(shards: &[Vec<Entry>]) -> Value {
    let total: u64 = shards.iter().flatten().map(Entry::len_bytes).sum();
    let mut placed: Vec<(String, Value)> = shards
        .iter()
        .enumerate()
        .flat_map(|(i, shard)| shard.iter().map(move |tensor| (i, tensor)))
        .map(|(i, tensor)| (tensor.name.clone(), shard_name(i, shards.len()).into()))
        .collect();
    placed.sort_by(|a, b| a.0.cmp(&b.0));
    let weight_map: Map<String, Value> = placed.into_iter().collect();
    json!({ "metadata": { "total_size": total }, "weight_map": weight_map })
}

/// Modules of a layer in the order in which transformers makes them.
const MODULES: [&str; 11] = [
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "self_attn.q_norm",
    "self_attn.k_norm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
    "input_layernorm",
    "post_attention_layernorm",
];

#[cfg(test)]
mod tests {
    use crate::model::synth::{Checkpoint, Part};

    #[test]
    fn shards_and_index_are_as_long_as_the_published_ones() {
        // Bytes of the files of Qwen/Qwen3-4B, -0.6B, -1.7B and -8B on Hugging Face.
        let index = "model.safetensors.index.json";
        let cases: [(&str, &[(&str, u64)]); 4] = [
            (
                "qwen3-4b",
                &[
                    (index, 32_819),
                    ("model-00001-of-00003.safetensors", 3_957_900_840),
                    ("model-00002-of-00003.safetensors", 3_987_450_520),
                    ("model-00003-of-00003.safetensors", 99_630_640),
                ],
            ),
            ("qwen3-0.6b", &[("model.safetensors", 1_503_300_328)]),
            (
                "qwen3-1.7b",
                &[
                    (index, 25_605),
                    ("model-00001-of-00002.safetensors", 3_441_185_608),
                    ("model-00002-of-00002.safetensors", 622_329_984),
                ],
            ),
            (
                "qwen3-8b",
                &[
                    (index, 32_878),
                    ("model-00001-of-00005.safetensors", 3_996_250_744),
                    ("model-00002-of-00005.safetensors", 3_993_160_032),
                    ("model-00003-of-00005.safetensors", 3_959_604_768),
                    ("model-00004-of-00005.safetensors", 3_187_841_392),
                    ("model-00005-of-00005.safetensors", 1_244_659_840),
                ],
            ),
        ];
        for (shape, published) in cases {
            let checkpoint = Checkpoint::new(shape, None, 1).unwrap().unwrap();
            let parts = checkpoint.parts();
            let made: Vec<_> = parts
                .iter()
                .filter(|part| part.name().starts_with("model"))
                .map(|part: &Part<'_>| (part.name(), part.len_bytes()))
                .collect();
            assert_eq!(made, published, "{shape}");
        }
    }
}
