//! Chunks of passes against all passes at once, on the tiny model.

use std::path::Path;

use super::*;
use crate::engine::emulator::Emulator;
use crate::engine::generate::layout;
use crate::isa::mma::Simd;
use crate::isa::profile::Profile;
use crate::model::{Model, qwen3};
use crate::plan::{Contract, LOGITS};
use crate::recipe::Recipe;

fn model() -> Model {
    Model::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tiny/model")).unwrap()
}

/// Everything that a tap sees; stops after `most` outputs.
struct Seen {
    outputs: Vec<(usize, usize, Tensor)>,
    most: usize,
}

impl Tap for Seen {
    fn wants(&self, _: &Pass, _: usize, _: &Step) -> bool {
        true
    }

    fn observe(&mut self, pass: &Pass, index: usize, _: &Step, output: &Tensor) -> Flow {
        self.outputs.push((pass.index, index, output.clone()));
        if self.outputs.len() < self.most { Flow::Continue } else { Flow::Stop }
    }
}

fn run_with(
    model: &Model,
    plans: &[Plan],
    tokens: &[Vec<u32>],
    chunk_bytes: usize,
    most: usize,
) -> (Option<Tensor>, Seen) {
    let mma = *Profile::by_id("h200").unwrap().mma("bf16").unwrap();
    let mut engine = Emulator::new(&mma, Simd::detect(), model.weights(), 64);
    let mut seen = Seen { outputs: Vec::new(), most };
    let chosen = run_in_chunks(&mut engine, plans, tokens, &mut seen, chunk_bytes).unwrap();
    (chosen, seen)
}

#[test]
fn chunks_of_passes_change_no_output_and_no_order() {
    let model = model();
    let (prompt, generated) = ([5, 6, 7, 8, 9], [10, 11, 12, 13, 14, 15, 16]);
    let (plans, tokens) = layout(model.config(), Contract::Native, &prompt, &generated).unwrap();
    let row = 2 * model.config().vocab_size;
    let (chosen, whole) = run_with(&model, &plans, &tokens, usize::MAX, usize::MAX);
    for (bytes, chunks) in [(0, 7), (row, 7), (2 * row, 4), (3 * row, 3), (6 * row, 2)] {
        let (own, mut seen) = run_with(&model, &plans, &tokens, bytes, usize::MAX);
        assert_eq!(own, chosen, "{chunks} chunks");
        for pass in 0..plans.len() {
            let steps = seen.outputs.iter().filter(|output| output.0 == pass).map(|o| o.1);
            assert!(steps.eq(0..plans[0].steps.len()), "steps of a pass are seen in order");
        }
        // Stable: the passes of one step stay in the order they were seen in.
        seen.outputs.sort_by_key(|output| output.1);
        assert!(seen.outputs == whole.outputs, "{chunks} chunks");
    }
}

/// The plan with another recipe in every step of this name's end.
fn with_recipe(plan: &Plan, name: &str, recipe: Recipe) -> Plan {
    let mut steps = plan.steps.to_vec();
    let named = steps.iter_mut().filter(|step| step.name.ends_with(name));
    assert_ne!(named.map(|step| step.recipe = recipe).count(), 0);
    Plan { stack: plan.stack, pass: plan.pass, steps: steps.into() }
}

#[test]
fn passes_whose_products_differ_give_the_bits_that_they_give_alone() {
    let model = model();
    let (mut plans, tokens) =
        layout(model.config(), Contract::Native, &[5, 6, 7, 8, 9], &[10, 11, 12]).unwrap();
    let native = run_with(&model, &plans, &tokens, usize::MAX, usize::MAX);
    plans[0] = with_recipe(&plans[0], "down_proj", Recipe::SplitKWorkspaceF32 { slices: 2 });
    plans[2] = with_recipe(&plans[2], "o_proj", Recipe::SplitKWorkspaceF32 { slices: 3 });
    plans[2] = with_recipe(&plans[2], LOGITS, Recipe::SplitKWorkspaceF32 { slices: 4 });

    let mma = *Profile::by_id("h200").unwrap().mma("bf16").unwrap();
    let mut engine = Emulator::new(&mma, Simd::detect(), model.weights(), 64);
    let mut alone = Seen { outputs: Vec::new(), most: usize::MAX };
    for (plan, tokens) in plans.iter().zip(&tokens) {
        let own = (std::slice::from_ref(plan), std::slice::from_ref(tokens));
        run(&mut engine, own.0, own.1, &mut alone).unwrap();
    }
    for chunk_bytes in [usize::MAX, 0] {
        let mut together = run_with(&model, &plans, &tokens, chunk_bytes, usize::MAX).1;
        together.outputs.sort_by_key(|output| (output.0, output.1));
        assert!(together.outputs == alone.outputs);
    }
    let mut native = native.1;
    native.outputs.sort_by_key(|output| (output.0, output.1));
    assert!(native.outputs != alone.outputs, "the recipes differ here");
}

#[test]
fn only_products_may_differ_in_their_recipe() {
    let model = model();
    let (mut plans, tokens) =
        layout(model.config(), Contract::Native, &[5, 6], &[10, 11, 12]).unwrap();
    plans[1] = with_recipe(&plans[1], "input_layernorm", Recipe::RowReduction { lanes: 64 });
    let mma = *Profile::by_id("h200").unwrap().mma("bf16").unwrap();
    let mut engine = Emulator::new(&mma, Simd::detect(), model.weights(), 64);
    let error = run(&mut engine, &plans, &tokens, &mut crate::engine::NoTap).unwrap_err();
    assert_eq!(error.to_string(), "pass 1: plans executed together must share their structure");
}

#[test]
fn a_tap_stops_in_any_chunk() {
    let model = model();
    let (plans, tokens) = layout(model.config(), Contract::Native, &[5, 6], &[10, 11, 12]).unwrap();
    let all = plans.len() * plans[0].steps.len();
    for most in [1, all - 11, all - 4, all] {
        let (chosen, seen) = run_with(&model, &plans, &tokens, 0, most);
        assert_eq!(chosen, None);
        assert_eq!(seen.outputs.len(), most);
    }
}

#[test]
fn chunks_begin_after_the_last_step_that_a_layer_or_a_cache_ties() {
    let model = model();
    let pass = Pass::alone(0, 0, 3);
    let plan = qwen3::forward(model.config(), Contract::Native, pass).unwrap();
    let names: Vec<&str> =
        plan.steps[tail(&plan.steps)..].iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["last_token", "norm", LOGITS, "argmax"]);
    assert_eq!(tail(&[]), 0);
}

#[test]
fn chunks_are_of_equal_size() {
    let model = model();
    let row = 2 * model.config().vocab_size;
    let (plans, _) = layout(model.config(), Contract::Native, &[1], &[2; 10]).unwrap();
    let from = tail(&plans[0].steps);
    // Passes that fit, passes in a chunk.
    for (fit, size) in [(0, 1), (1, 1), (3, 3), (4, 4), (5, 5), (9, 5), (10, 10), (99, 10)] {
        assert_eq!(passes_of_a_chunk(&plans, from, fit * row), size, "{fit} fit");
    }
}

#[test]
fn passes_of_one_length_share_their_steps() {
    let model = model();
    let (plans, _) = layout(model.config(), Contract::Native, &[1, 2, 3], &[4, 5, 6, 7]).unwrap();
    assert!(!Arc::ptr_eq(&plans[0].steps, &plans[1].steps));
    for plan in &plans[2..] {
        assert!(Arc::ptr_eq(&plan.steps, &plans[1].steps));
        let own = qwen3::forward(model.config(), Contract::Native, plan.pass).unwrap();
        assert_eq!(*plan, own, "shared or not, the plan of the pass");
    }
}

#[test]
fn progress_ends_at_the_total() {
    struct Told(Vec<(u64, u64, usize)>);
    impl Tap for Told {
        fn wants(&self, _: &Pass, _: usize, _: &Step) -> bool {
            false
        }
        fn observe(&mut self, _: &Pass, _: usize, _: &Step, _: &Tensor) -> Flow {
            Flow::Continue
        }
        fn progress(&mut self, now: &Progress<'_>) -> Flow {
            self.0.push((now.done, now.total, now.index));
            Flow::Continue
        }
    }
    let model = model();
    let (plans, tokens) = layout(model.config(), Contract::Native, &[5, 6], &[10, 11, 12]).unwrap();
    let mma = *Profile::by_id("h200").unwrap().mma("bf16").unwrap();
    let mut engine = Emulator::new(&mma, Simd::detect(), model.weights(), 64);
    let mut told = Told(Vec::new());
    run_in_chunks(&mut engine, &plans, &tokens, &mut told, 0).unwrap();
    let Told(told) = told;
    assert_eq!(told[0].0, 0);
    assert!(told.is_sorted_by_key(|now| now.0));
    let (done, total, index) = told[told.len() - 1];
    assert_eq!((done, index), (total, plans[0].steps.len() - 1));
}
