//! Model folders that cannot be run: one sentence that names what is wrong, one exit
//! code, the same from the command that produces and the one that verifies.

use std::fs;

use safetensors::Dtype;
use serde_json::{Value, json};

use crate::folder::{INDEX, SECOND, home, refused, shard, tensors, write};
use crate::{Home, end, fails};

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
