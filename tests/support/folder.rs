//! A copy of the tiny model to be broken, and what must not happen with it.

#![allow(dead_code, clippy::unwrap_used)] // each test target uses its own part

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use attest::transcript::Transcript;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

use crate::command::{Ended, Home, end, fails, tiny_model};
use crate::support::{Made, Making};

/// A home with the model in `model`, a prompt, and a transcript of the whole model.
pub(crate) fn home() -> Home {
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
pub(crate) fn refused(home: &Home, exit: i32, sentence: &str) {
    let run = ["run", "--model", "model", "--prompt", "p.txt", "--engine", "emulator"];
    fails(&mut home.attest(&run), exit, &[sentence]);
    assert!(!home.path("transcript.cbor").exists(), "{sentence}");
    let ended = end(&mut home.attest(&["verify", "t.cbor", "--model", "model"]));
    assert_eq!(ended.exit, exit, "{}", ended.stdout);
    assert!(!ended.stdout.to_lowercase().contains("verified"), "{}", ended.stdout);
    let row = ended.stdout.lines().find(|line| line.starts_with("model ")).unwrap();
    assert!(row.contains("FAILED") && row.contains(sentence), "{sentence}: {row}");
}

/// Runs the model on a prompt, by the emulator, into `o.cbor`; the claimed time is
/// inside the tests' window.
pub(crate) fn run(home: &Home, prompt: &str, more: &[&str]) -> Ended {
    let args = ["run", "--model", "model", "--prompt", prompt, "--engine", "emulator"];
    let rest = ["--max-new-tokens", "2", "--whole", "--out", "o.cbor", "--overwrite"];
    let time = ["--claimed-time", "1796045700"];
    end(&mut home.attest(&[&args[..], &rest, &time, more].concat()))
}

/// What [`run`] wrote, without a trace, to be changed and signed again.
pub(crate) fn ran(home: &Home) -> Made {
    let transcript = Transcript::parse(fs::read(home.path("o.cbor")).unwrap()).unwrap();
    let contents = vec![transcript.section("logits").unwrap().to_vec()];
    let whole = transcript.as_bytes().to_vec();
    Made { statement: transcript.statement().clone(), contents, whole }
}

/// Tensors by name: type, shape, bytes.
pub(crate) type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

pub(crate) fn tensors() -> Tensors {
    let file = fs::read(tiny_model().join("model.safetensors")).unwrap();
    let read = SafeTensors::deserialize(&file).unwrap();
    let own = |(name, view): (String, TensorView<'_>)| {
        (name, (view.dtype(), view.shape().to_vec(), view.data().to_vec()))
    };
    read.tensors().into_iter().map(own).collect()
}

pub(crate) fn write(path: &Path, tensors: &Tensors) {
    let views = tensors.iter().map(|(name, (dtype, shape, bytes))| {
        (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

/// Divides the weights into two files with an index; returns the index.
pub(crate) fn shard(home: &Home) -> Value {
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

pub(crate) const FIRST: &str = "model-00001-of-00002.safetensors";
pub(crate) const SECOND: &str = "model-00002-of-00002.safetensors";
pub(crate) const INDEX: &str = "model/model.safetensors.index.json";
