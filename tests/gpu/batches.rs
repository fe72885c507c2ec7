//! Batches on the GPU against each sequence alone, step by step.

use attest::engine::batch::generate_batch;
use attest::engine::emulator::Emulator;
use attest::engine::generate::{StopRule, generate};
use attest::engine::{Engine, Flow, NoTap, Tap};
use attest::isa::mma::Simd;
use attest::isa::profile::Profile;
use attest::model::Config;
use attest::num::Tensor;
use attest::plan::{Contract, Pass, Stack, Step};

use super::generation::{catalog, cuda, open, tiny_model, write_random_model};
use super::inputs::draw;
use super::recording::{Compare, Record};
use super::tally::{Tally, device};

/// Static batches: every output of every sequence is that of a run of its own.
#[test]
fn batches_change_no_bit() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("batches_change_no_bit", &device);
    let folder = tempfile::tempdir().unwrap();
    write_random_model(folder.path());
    for (model, folder) in [("tiny", tiny_model()), ("random", Some(folder.path().into()))] {
        let Some(folder) = folder else { continue };
        let (config, weights) = open(&folder);
        let catalog = catalog(&config, Stack::Native);
        let positions = BATCHED.1 + BATCHED_TOKENS;
        let engine = || cuda(&device, &weights, Stack::Native, &catalog, positions);
        let mut single = engine();
        for count in BATCHES {
            batches(&mut tally, (model, &config), count, (&mut engine(), &mut single));
        }
    }
    tally.finish();
}

/// The check of batches without a GPU, by the emulator.
#[test]
fn the_harness_compares_every_sequence() {
    let folder = tempfile::tempdir().unwrap();
    write_random_model(folder.path());
    let (config, weights) = open(folder.path());
    let profile = Profile::by_id("h200").unwrap();
    let mma = profile.mma("bf16").unwrap();
    let rule = StopRule { max_new_tokens: 2, stop_ids: vec![] };
    let prompts = [vec![5, 6, 7], vec![8]];
    let engine = || Emulator::new(mma, Simd::detect(), &weights, 16);
    let mut record = Sequences::default();
    let made =
        generate_batch(&mut engine(), &config, Contract::Native, &prompts, &rule, &mut record);
    assert_eq!(made.unwrap().unwrap().len(), 2);
    for (prompt, record) in prompts.iter().zip(&record.0) {
        let mut compare = Compare::with(record);
        generate(&mut engine(), &config, Contract::Native, prompt, &rule, &mut compare).unwrap();
        assert_eq!(compare.steps as usize, record.outputs.iter().map(Vec::len).sum::<usize>());
        assert_eq!((compare.differing, compare.first), (0, None));
    }
    // And one that differs is seen.
    let mut compare = Compare::with(&record.0[0]);
    generate(&mut engine(), &config, Contract::Native, &[5, 6, 8], &rule, &mut compare).unwrap();
    assert_ne!(compare.differing, 0);
}

/// Keeps every output of every sequence.
#[derive(Default)]
struct Sequences(Vec<Record>);

impl Tap for Sequences {
    fn wants(&self, _: &Pass, _: usize, _: &Step) -> bool {
        true
    }

    fn observe(&mut self, pass: &Pass, index: usize, step: &Step, output: &Tensor) -> Flow {
        if self.0.len() <= pass.sequence {
            self.0.resize_with(pass.sequence + 1, Record::default);
        }
        self.0[pass.sequence].observe(pass, index, step, output)
    }
}

/// Compares a batch of `count` prompts on a fresh engine with a run of each on
/// another.
pub fn batches<E: Engine>(
    tally: &mut Tally,
    (model, config): (&str, &Config),
    count: usize,
    (fresh, single): (&mut E, &mut E),
) {
    let vocab = config.vocab_size as u64;
    let (shortest, longest) = BATCHED;
    let prompt = |number: usize| -> Vec<u32> {
        let length = shortest + number * 37 % (longest - shortest + 1);
        (0..length as u64).map(|i| (draw(900 + number as u64, i) % vocab) as u32).collect()
    };
    let prompts: Vec<Vec<u32>> = (0..count).map(prompt).collect();
    let free = StopRule { max_new_tokens: BATCHED_TOKENS, stop_ids: vec![] };
    let first = generate(single, config, Contract::Native, &prompts[0], &free, &mut NoTap);
    // The first sequence ends half way, the others go on without it.
    let stop = first.unwrap().unwrap().tokens[BATCHED_TOKENS / 2];
    let rule = StopRule { stop_ids: vec![stop], ..free };
    let mut record = Sequences::default();
    let made = generate_batch(fresh, config, Contract::Native, &prompts, &rule, &mut record);
    let made = made.unwrap().unwrap();
    for (number, (made, prompt)) in made.iter().zip(&prompts).enumerate() {
        let mut compare = Compare::with(&record.0[number]);
        let own = generate(single, config, Contract::Native, prompt, &rule, &mut compare);
        let (own, tokens) = (own.unwrap(), (prompt.len(), made.tokens.len()));
        let what = format!(
            "{model}, sequence {number} of {count}, {} + {}, {} steps",
            tokens.0, tokens.1, compare.steps
        );
        tally.add(what, compare.compared, compare.differing, compare.first);
        if let Some(own) = own {
            assert_eq!(own.tokens, made.tokens);
        }
    }
}

/// Sequences of a batch.
pub const BATCHES: [usize; 4] = [1, 2, 5, 16];
/// Tokens of the shortest and the longest prompt of a batch.
pub const BATCHED: (usize, usize) = (1, 150);
/// Most tokens generated after each.
pub const BATCHED_TOKENS: usize = 16;
