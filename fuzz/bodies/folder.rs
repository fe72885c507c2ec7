//! Readers that want a folder: the weights of a model of one layer.
//!
//! A folder for each thread; of it only the fuzzed file changes.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use attest::model::files::Folder;
use attest::model::weights::architecture;
use attest::model::{Config, Weights};
use tempfile::TempDir;

/// The smallest configuration that is accepted.
pub const CONFIG: &str = r#"{"model_type":"qwen3","dtype":"bfloat16","hidden_act":"silu","vocab_size":1,
"hidden_size":128,"intermediate_size":1,"num_hidden_layers":1,"num_attention_heads":1,"num_key_value_heads":1,
"head_dim":128,"rms_norm_eps":1e-6,"rope_theta":10000,"max_position_embeddings":64,"tie_word_embeddings":true}"#;

/// Sets up the folder of a thread.
fn folder(file: &str) -> TempDir {
    let base =
        if Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
    let outer = tempfile::tempdir_in(base).unwrap();
    let inner = outer.path().join("m");
    fs::create_dir(&inner).unwrap();
    if file == INDEX {
        for (name, second) in [(SHARDS[0], false), (SHARDS[1], true)] {
            write(&inner.join(name), &header(|tensor| tensor.contains("layers") == second));
        }
        // What a path out of the folder would reach.
        write(&outer.path().join("other.safetensors"), &header(|_| true));
    }
    outer
}

/// The header of a file with some of the architecture's tensors, its length first.
pub fn header(has: impl Fn(&str) -> bool) -> Vec<u8> {
    let mut at = 0;
    let mut members = Vec::new();
    for (name, shape) in architecture(&config()).filter(|(name, _)| has(name)) {
        let end = at + len_bytes(&shape);
        members.push(format!(
            "\"{name}\":{{\"dtype\":\"BF16\",\"shape\":{shape:?},\"data_offsets\":[{at},{end}]}}"
        ));
        at = end;
    }
    let text = format!("{{{}}}", members.join(","));
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

fn config() -> Config {
    Config::from_json(CONFIG.as_bytes()).unwrap()
}

/// Bytes of a bf16 tensor.
fn len_bytes(shape: &[usize]) -> u64 {
    2 * shape.iter().product::<usize>() as u64
}

/// Bytes of the tensors that a header names.
fn data_len(header: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(header);
    let ends = text.split("\"data_offsets\":[").skip(1);
    let end = |part: &str| part.split([',', ']']).nth(1)?.parse().ok();
    ends.filter_map(end).max().unwrap_or(0)
}

/// Writes a header and as many zeros as it asks for.
fn write(path: &Path, header: &[u8]) {
    let mut file = File::create(path).unwrap();
    file.write_all(header).unwrap();
    file.set_len(header.len() as u64 + data_len(header)).unwrap();
}

thread_local! {
    static SINGLE_FOLDER: TempDir = folder(SINGLE);
    static INDEX_FOLDER: TempDir = folder(INDEX);
}

/// A weight file. Input: the number of bytes that the data are longer than the whole
/// model's (as `i8`), then everything before the data; the data are zeros.
pub fn safetensors_header(input: &[u8]) -> bool {
    let Some((&more, header)) = input.split_first() else { return false };
    let whole: u64 = architecture(&config()).map(|(_, shape)| len_bytes(&shape)).sum();
    let data = whole.checked_add_signed(i64::from(more as i8)).unwrap();
    SINGLE_FOLDER.with(|outer| {
        let path = outer.path().join("m").join(SINGLE);
        let mut file = File::create(&path).unwrap();
        file.write_all(header).unwrap();
        let length = header.len() as u64 + data;
        file.set_len(length).unwrap();
        let Some(weights) = open(outer) else { return false };
        // The header is what the format says, and the tensors are the rest.
        let stated = u64::from_le_bytes(header[..8].try_into().unwrap());
        assert_eq!(8 + stated + weights.len_bytes(), length);
        true
    })
}

/// The index of shards: whatever it says, only files of the folder are opened.
pub fn index(input: &[u8]) -> bool {
    INDEX_FOLDER.with(|outer| {
        fs::write(outer.path().join("m").join(INDEX), input).unwrap();
        let Some(weights) = open(outer) else { return false };
        for file in weights.files() {
            assert!([INDEX, SHARDS[0], SHARDS[1]].contains(&file.name()), "{}", file.name());
        }
        true
    })
}

/// Opens the weights; of what is accepted, every tensor has the shape and the bytes that
/// the configuration implies.
fn open(outer: &TempDir) -> Option<Weights> {
    let files = Folder::open(&outer.path().join("m")).unwrap();
    let weights = Weights::open(&files, &config()).ok()?;
    let mut due = 0;
    for (name, shape) in architecture(&config()) {
        let Some(tensor) = weights.tensor(&name) else { continue };
        assert_eq!(tensor.shape, shape, "{name}");
        assert_eq!(tensor.bytes.len() as u64, len_bytes(&shape), "{name}");
        due += 1;
    }
    assert_eq!(weights.names().count(), due, "no other tensor");
    Some(weights)
}

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The shards of the index: all but the layer, the layer.
pub const SHARDS: [&str; 2] = ["a.safetensors", "b.safetensors"];
