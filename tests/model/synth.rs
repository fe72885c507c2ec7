//! Synthetic checkpoints: the bytes, and that a model made of them behaves.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use attest::engine::emulator::Emulator;
use attest::engine::generate::{StopRule, generate};
use attest::engine::{Flow, Tap};
use attest::isa::mma::Simd;
use attest::isa::profile::Profile;
use attest::model::Model;
use attest::model::synth::{Checkpoint, Written, digest, shapes};
use attest::model::weights::OutputMatrix;
use attest::num::Tensor;
use attest::plan::{Contract, Pass, Step};
use tempfile::TempDir;

/// `attest model synth --config qwen3-test --seed 1`, in `spec/synthetic-model.md`.
const SMALL: &str = "585129d5be2731f5897a7ae5f28aee1dfb23124716628fa2043782ca55aea3e6";
/// The same of `qwen3-4b`.
const LARGE: &str = "91a36ebdcc84b95c2452c52d604538bbff5c30bb7e2fbacf5a74d53512757683";

fn small(seed: u64) -> Checkpoint {
    Checkpoint::new("qwen3-test", None, seed).unwrap().unwrap()
}

/// Makes every file in memory, or nowhere.
fn digests(checkpoint: &Checkpoint) -> Vec<Written> {
    let write = |part: &attest::model::synth::Part<'_>| {
        let written = part.write(&mut std::io::sink(), &mut |_| {}).unwrap();
        assert_eq!(written.len_bytes, part.len_bytes(), "{}", part.name());
        written
    };
    checkpoint.parts().iter().map(write).collect()
}

/// Writes a checkpoint and the tiny example's tokenizer.
fn folder(checkpoint: &Checkpoint) -> TempDir {
    let folder = TempDir::new().unwrap();
    for part in checkpoint.parts() {
        let mut file = fs::File::create(folder.path().join(part.name())).unwrap();
        part.write(&mut file, &mut |_| {}).unwrap();
    }
    fs::copy(
        repository("examples/tiny/model/tokenizer.json"),
        folder.path().join("tokenizer.json"),
    )
    .unwrap();
    folder
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn the_small_checkpoint_has_its_recorded_digest() {
    assert_eq!(digest(&digests(&small(1))).to_string(), SMALL);
}

#[test]
#[ignore = "hashes eight gigabytes, half a minute on two cores"]
fn the_checkpoint_of_qwen3_4b_has_its_recorded_digest() {
    let checkpoint = Checkpoint::new("qwen3-4b", None, 1).unwrap().unwrap();
    assert_eq!(digest(&digests(&checkpoint)).to_string(), LARGE);
}

#[test]
fn the_specification_states_the_recorded_digests() {
    let page = fs::read_to_string(repository("spec/synthetic-model.md")).unwrap();
    assert!(page.contains(SMALL) && page.contains(LARGE));
}

#[test]
fn any_number_of_threads_makes_the_same_bytes() {
    let of = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| digests(&small(2)))
    };
    let one = of(1);
    assert_eq!(of(2), one);
    assert_eq!(of(5), one);
}

#[test]
fn seeds_share_no_weight_file_and_layers_keep_their_bytes() {
    let open = |checkpoint| {
        let folder = folder(&checkpoint);
        let model = Model::open(folder.path()).unwrap();
        (folder, model)
    };
    let (_first, first) = open(small(1));
    let (_other, other) = open(small(3));
    let (_fewer, fewer) = open(Checkpoint::new("qwen3-test", Some(1), 1).unwrap().unwrap());
    let bytes = |model: &'_ Model, name: &str| model.weights().tensor(name).unwrap().bytes.to_vec();
    assert_eq!(fewer.config().num_hidden_layers, 1);
    for name in fewer.weights().names() {
        assert_eq!(bytes(&fewer, name), bytes(&first, name), "{name}");
        assert_ne!(bytes(&other, name), bytes(&first, name), "{name}");
    }
}

#[test]
fn no_two_tensors_are_equal() {
    let folder = folder(&small(1));
    let model = Model::open(folder.path()).unwrap();
    let weights = model.weights();
    let starts: BTreeSet<&[u8]> =
        weights.names().map(|name| &weights.tensor(name).unwrap().bytes[..64]).collect();
    assert_eq!(starts.len(), weights.names().count());
}

#[test]
fn the_loader_reads_it_as_any_other_model() {
    let folder = folder(&small(1));
    let model = Model::open(folder.path()).unwrap();
    assert_eq!(model.weights().output_matrix(), OutputMatrix::Tied);
    // Three shards, the index, two configurations and the tokenizer.
    assert_eq!(model.manifest().files().len(), 7);
    assert_eq!(model.warnings(), [""; 0]);
    let config = fs::read_to_string(folder.path().join("config.json")).unwrap();
    assert!(config.contains("\"_name_or_path\": \"qwen3-test-synth-1\""), "{config}");
}

#[test]
fn every_shape_has_a_configuration_that_is_understood() {
    for shape in shapes() {
        let checkpoint = Checkpoint::new(shape, None, 0).unwrap().unwrap();
        assert_eq!(checkpoint.config().head_dim, 128, "{shape}");
        assert_eq!(checkpoint.name(), format!("{shape}-synth-0"));
    }
    assert!(Checkpoint::new("qwen3-5b", None, 0).unwrap().is_none());
    assert!(Checkpoint::new("qwen3-test", Some(0), 0).is_err(), "no model has no layer");
}

/// Largest exponent field of the outputs, and what is in the residual stream.
#[derive(Default)]
struct Ranges {
    largest: u16,
    residual: u16,
}

impl Tap for Ranges {
    fn wants(&self, _: &Pass, _: usize, _: &Step) -> bool {
        true
    }

    fn observe(&mut self, _: &Pass, _: usize, step: &Step, output: &Tensor) -> Flow {
        let largest = output.as_bf16().into_iter().flatten().map(|x| x.0 & 0x7fff).max();
        self.largest = self.largest.max(largest.unwrap_or(0));
        if step.name.ends_with("mlp.residual") {
            self.residual = self.residual.max(largest.unwrap_or(0));
        }
        Flow::Continue
    }
}

#[test]
fn activations_are_massive_but_finite_and_tokens_vary() {
    let folder = folder(&small(1));
    let model = Model::open(folder.path()).unwrap();
    let mma = *Profile::by_id("h200").unwrap().mma("bf16").unwrap();
    let prompt = model.tokenizer().encode(b"Call me Ishmael. Some years ago").unwrap();
    let rule = StopRule { max_new_tokens: 24, stop_ids: Vec::new() };
    let mut engine = Emulator::new(&mma, Simd::detect(), model.weights(), 64);
    let mut ranges = Ranges::default();
    let made = generate(&mut engine, model.config(), Contract::Native, &prompt, &rule, &mut ranges)
        .unwrap();
    let tokens: BTreeSet<u32> = made.unwrap().tokens.into_iter().collect();
    assert!(ranges.largest < 0x4700, "{:04x}: nothing is above 2^15", ranges.largest);
    assert!(ranges.residual > 0x4280, "{:04x}: a channel is above 64", ranges.residual);
    assert!(tokens.len() > 12, "24 tokens, {} of them different", tokens.len());
}

#[test]
fn a_write_that_fails_is_reported_with_its_reason() {
    /// Takes some bytes, then is full.
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0 == 0 {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            Ok(taken)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let checkpoint = small(1);
    for part in checkpoint.parts() {
        for room in [0, 100] {
            let error = part.write(&mut Full(room), &mut |_| {}).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{}", part.name());
        }
    }
}
