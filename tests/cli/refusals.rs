//! Model folders that cannot be run: one sentence that names what is wrong, one exit
//! code, the same from the command that produces and the one that verifies.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

use crate::support::Making;
use crate::{Home, end, fails, tiny_model};

/// A home with the model in `model`, a prompt, and a transcript of the whole model.
fn home() -> Home {
    let home = Home::configured();
    home.write("p.txt", "Call me");
    home.write("t.cbor", Making::default().make().seal().as_bytes());
    fs::create_dir(home.path("model")).unwrap();
    for entry in fs::read_dir(tiny_model()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), home.path("model").join(entry.file_name())).unwrap();
    }
    home
}

/// Requires that nobody takes the model: this exit code, this sentence.
fn refused(home: &Home, exit: i32, sentence: &str) {
    let run = ["run", "--model", "model", "--prompt", "p.txt", "--engine", "emulator"];
    fails(&mut home.attest(&run), exit, &[sentence]);
    assert!(!home.path("transcript.cbor").exists(), "{sentence}");
    let ended = end(&mut home.attest(&["verify", "t.cbor", "--model", "model"]));
    assert_eq!(ended.exit, exit, "{}", ended.stdout);
    let row = ended.stdout.lines().find(|line| line.starts_with("model ")).unwrap();
    assert!(row.contains("FAILED") && row.contains(sentence), "{sentence}: {row}");
}

/// Tensors by name: type, shape, bytes.
type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn tensors() -> Tensors {
    let file = fs::read(tiny_model().join("model.safetensors")).unwrap();
    let read = SafeTensors::deserialize(&file).unwrap();
    let own = |(name, view): (String, TensorView<'_>)| {
        (name, (view.dtype(), view.shape().to_vec(), view.data().to_vec()))
    };
    read.tensors().into_iter().map(own).collect()
}

fn write(path: &Path, tensors: &Tensors) {
    let views = tensors.iter().map(|(name, (dtype, shape, bytes))| {
        (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

/// Writes the weights with one tensor replaced, as zeros of another type or shape.
fn with(home: &Home, name: &str, dtype: Dtype, shape: &[usize]) {
    let mut all = tensors();
    let bytes = shape.iter().product::<usize>() * dtype.bitsize() / 8;
    all.insert(name.into(), (dtype, shape.to_vec(), vec![0; bytes]));
    write(&home.path("model/model.safetensors"), &all);
}

const QUERY: &str = "model.layers.0.self_attn.q_proj.weight";

#[test]
fn a_tensor_of_another_type_is_refused_by_name() {
    let home = home();
    let shape = tensors()[QUERY].1.clone();
    for (dtype, word) in [
        (Dtype::F16, "F16"),
        (Dtype::F32, "F32"),
        (Dtype::F8_E4M3, "F8_E4M3"),
        (Dtype::F8_E5M2, "F8_E5M2"),
        (Dtype::I8, "I8"),
        (Dtype::U8, "U8"),
    ] {
        with(&home, QUERY, dtype, &shape);
        let sentence = format!("tensor {QUERY} has type {word}, only BF16 is supported");
        refused(&home, 5, &sentence);
    }
    // GPTQ and AWQ pack their codes in words, under another name.
    with(&home, "model.layers.0.self_attn.q_proj.qweight", Dtype::I32, &[32, 256]);
    refused(&home, 5, "model.layers.0.self_attn.q_proj.qweight has type I32, only BF16");
    let run = ["run", "--model", "model", "--prompt", "p.txt"];
    fails(&mut home.attest(&run), 5, &["hint: this program runs bf16 checkpoints"]);
}

#[test]
fn a_quantised_or_converted_checkpoint_is_refused_by_its_configuration() {
    let home = home();
    let path = home.path("model/config.json");
    let whole: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let method = |name: &str| json!({ "bits": 4, "group_size": 128, "quant_method": name });
    let quantised = |name: &str| {
        format!(
            "config.json: field quantization_config.quant_method is \"{name}\", \
             only bf16 without quantisation is supported"
        )
    };
    let dtype = |name: &str| format!("is \"{name}\", only \"bfloat16\" is supported");
    let cases = [
        ("quantization_config", method("gptq"), quantised("gptq")),
        ("quantization_config", method("awq"), quantised("awq")),
        ("quantization_config", method("fp8"), quantised("fp8")),
        ("quantization_config", method("bitsandbytes"), quantised("bitsandbytes")),
        ("torch_dtype", json!("float16"), dtype("float16")),
        ("torch_dtype", json!("float32"), dtype("float32")),
    ];
    for (field, value, sentence) in cases {
        let mut config = whole.clone();
        config.as_object_mut().unwrap().shift_remove("dtype");
        config["torch_dtype"] = json!("bfloat16");
        config[field] = value;
        fs::write(&path, config.to_string()).unwrap();
        refused(&home, 5, &sentence);
        let run = ["run", "--model", "model", "--prompt", "p.txt"];
        fails(&mut home.attest(&run), 5, &["hint: this program runs bf16 checkpoints"]);
    }
}

#[test]
fn a_tensor_of_another_shape_is_refused_with_both_shapes() {
    let home = home();
    let shape = tensors()[QUERY].1.clone();
    let turned = [shape[1], shape[0]];
    assert_ne!(shape, turned);
    with(&home, QUERY, Dtype::BF16, &turned);
    refused(&home, 4, &format!("tensor {QUERY} has shape {turned:?}, expected {shape:?}"));
}

/// Divides the weights into two files with an index; returns the index.
fn shard(home: &Home) -> Value {
    let (first, second): (Tensors, Tensors) =
        tensors().into_iter().partition(|(name, _)| !name.contains("layers.1."));
    let mut map = serde_json::Map::new();
    for (part, file) in [(&first, FIRST), (&second, SECOND)] {
        write(&home.path("model").join(file), part);
        map.extend(part.keys().map(|name| (name.clone(), file.into())));
    }
    fs::remove_file(home.path("model/model.safetensors")).unwrap();
    let index = json!({ "metadata": {}, "weight_map": map });
    fs::write(home.path(INDEX), index.to_string()).unwrap();
    index
}

#[test]
fn a_missing_shard_is_named() {
    let home = home();
    shard(&home);
    let run = ["run", "--model", "model", "--prompt", "p.txt", "--engine", "emulator"];
    let whole = end(home.attest(&run).args(["--max-new-tokens", "1", "--out", "o.cbor"]));
    assert_eq!(whole.exit, 0, "{}", whole.stderr);
    fs::remove_file(home.path("model").join(SECOND)).unwrap();
    refused(&home, 5, &format!("shard {SECOND} of 11 tensors is missing from "));
}

#[test]
fn an_index_opens_no_file_outside_the_folder() {
    let home = home();
    let index = shard(&home);
    let outside = home.path("outside.safetensors");
    fs::copy(home.path("model").join(SECOND), &outside).unwrap();
    for place in ["../outside.safetensors", outside.to_str().unwrap(), "sub/x.safetensors"] {
        let mut index = index.clone();
        index["weight_map"][QUERY] = place.into();
        fs::write(home.path(INDEX), index.to_string()).unwrap();
        let sentence =
            format!("tensor {QUERY} is placed in {place:?}, not a .safetensors file of the folder");
        refused(&home, 4, &sentence);
    }
    #[cfg(unix)]
    {
        fs::write(home.path(INDEX), index.to_string()).unwrap();
        fs::remove_file(home.path("model").join(SECOND)).unwrap();
        let link = home.path("model").join(SECOND);
        std::os::unix::fs::symlink("../outside.safetensors", link).unwrap();
        refused(&home, 4, &format!("link {SECOND} -> ../outside.safetensors leaves "));
    }
}

const FIRST: &str = "model-00001-of-00002.safetensors";
const SECOND: &str = "model-00002-of-00002.safetensors";
const INDEX: &str = "model/model.safetensors.index.json";
