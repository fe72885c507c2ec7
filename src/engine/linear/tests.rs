//! Parts of one step with recipes of their own, on the tiny model.

use std::path::Path;

use super::*;
use crate::engine::emulator::Emulator;
use crate::engine::{Engine, Part};
use crate::isa::mma::{MmaProfile, Simd};
use crate::isa::profile::Profile;
use crate::model::Model;
use crate::num::{Dtype, Tensor};
use crate::plan::{Op, Operand, Pass, ValueId};
use crate::recipe::split_k::split_k_workspace_f32;

const WEIGHT: &str = "model.layers.0.mlp.down_proj.weight";
/// The weight's shape.
const N: usize = 256;
const K: usize = 512;

fn mma() -> MmaProfile {
    *Profile::by_id("h200").unwrap().mma("bf16").unwrap()
}

fn model() -> Model {
    Model::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tiny/model")).unwrap()
}

fn split(slices: u8) -> Recipe {
    Recipe::SplitKWorkspaceF32 { slices }
}

fn step(recipe: Recipe, rows: usize) -> Step {
    Step {
        name: "down_proj".into(),
        layer: Some(0),
        op: Op::Linear { k: K },
        recipe,
        inputs: vec![Operand::Value(ValueId(0)), Operand::Weight(WEIGHT.into())],
        output: ValueId(1),
        keeps: None,
        rows,
        columns: N,
        dtype: Dtype::Bf16,
    }
}

/// Row `index` of the input: the same numbers wherever it is.
///
/// In column `index` the first and the last product cancel. What lies between them is
/// small, all positive, and cut as long as the first is in the accumulator: the sum says
/// how many columns are in the first slice.
fn row(weight: &[Bf16], index: usize) -> Vec<Bf16> {
    let column = &weight[index * K..(index + 1) * K];
    // Sign and significand of one, and an exponent for a product from 2^exponent on.
    let factor = |like: u16, exponent: u16, with: Bf16| {
        Bf16((like & 0x807f) | ((2 * 127 + exponent - ((with.0 >> 7) & 0xff)) << 7))
    };
    let small = |&with: &Bf16| Bf16(factor(with.0 & 0x8000, 0, with).0 - (6 << 7));
    let mut row: Vec<Bf16> = column.iter().map(small).collect();
    row[0] = factor(column[K - 1].0, 21, column[0]);
    row[K - 1] = factor(column[0].0 ^ 0x8000, 21, column[K - 1]);
    row
}

fn oracle(weight: &[Bf16], recipe: Recipe, index: usize) -> Vec<Bf16> {
    let slices = Slices::of(recipe, K).unwrap().unwrap();
    let sums = split_k_workspace_f32(&mma(), &row(weight, index), weight, &slices);
    sums.into_iter().map(Bf16::round).collect()
}

/// Executes parts, each a recipe and the rows it has.
fn execute(model: &Model, parts: &[(Recipe, Range<usize>)]) -> Result<Vec<Bf16>, EngineError> {
    let steps: Vec<Step> = parts.iter().map(|(recipe, rows)| step(*recipe, rows.len())).collect();
    let pass = |rows: &Range<usize>| Pass::alone(0, rows.start, rows.len());
    let own = steps.iter().zip(parts);
    let group =
        Group { parts: own.map(|(step, part)| Part { pass: pass(&part.1), step }).collect() };
    let weight = model.weights().tensor(WEIGHT).unwrap().elements();
    let indices = parts.iter().flat_map(|part| part.1.clone());
    let x: Vec<Bf16> = indices.flat_map(|index| row(&weight, index)).collect();
    let x = Tensor::matrix(group.rows(), K, x);
    let mut engine = Emulator::new(&mma(), Simd::detect(), model.weights(), 64);
    let out = engine.execute(&group, &[&x])?;
    assert_eq!(out.shape(), [group.rows(), N]);
    Ok(out.as_bf16().unwrap().to_vec())
}

#[test]
fn each_part_follows_its_own_recipe_in_any_order() {
    let model = model();
    let weight = model.weights().tensor(WEIGHT).unwrap().elements();
    let (single, two, three) = (Recipe::SingleWalk, split(2), split(3));
    let orders = [
        vec![(single, 0..5)],
        vec![(two, 0..5)],
        vec![(two, 0..3), (single, 3..4)],
        vec![(single, 3..4), (two, 0..3)],
        vec![(three, 0..3), (single, 3..4), (two, 4..6), (single, 6..7), (three, 7..8)],
        vec![(two, 4..6), (single, 6..7), (three, 0..3), (single, 3..4), (three, 7..8)],
    ];
    for parts in orders {
        let expected: Vec<Bf16> = parts
            .iter()
            .flat_map(|(recipe, rows)| rows.clone().map(|index| (*recipe, index)))
            .flat_map(|(recipe, index)| oracle(&weight, recipe, index))
            .collect();
        assert!(execute(&model, &parts).unwrap() == expected, "{parts:?}");
    }
    for index in 0..8 {
        let [single, two, three] = [single, two, three].map(|r| oracle(&weight, r, index));
        assert!(single != two && two != three && three != single, "row {index} tells them apart");
    }
}

#[test]
fn a_part_without_a_product_recipe_is_refused() {
    let model = model();
    // (recipe of the second part, words of the error)
    let cases = [
        (Recipe::Elementwise, "recipe elementwise is not implemented by the emulator engine"),
        (split(7), "split-K of 512 columns in 7 slices is not covered: the last would be empty"),
        (split(1), "split-K in 1 slices is not covered: it needs at least 2"),
    ];
    for (recipe, words) in cases {
        for parts in
            [[(Recipe::SingleWalk, 0..1), (recipe, 1..2)], [(recipe, 0..1), (split(2), 1..3)]]
        {
            let error = execute(&model, &parts).unwrap_err().to_string();
            assert_eq!(error, format!("down_proj: {words}"));
        }
    }
}

#[test]
fn rows_of_one_recipe_belong_together() {
    let (single, two) = (Recipe::SingleWalk, split(2));
    let steps = [step(two, 5), step(single, 1), step(single, 1), step(two, 1), step(two, 2)];
    let expected = [
        Share { recipe: two, rows: vec![0..5, 7..10] },
        Share { recipe: single, rows: std::iter::once(5..7).collect() },
    ];
    assert_eq!(shares(steps.iter()), expected);
    assert_eq!(expected.map(|share| share.count()), [8, 2]);
    assert_eq!(shares(std::iter::empty()), []);
}

#[test]
fn scratch_is_that_of_the_largest_share_and_its_copies() {
    let threads = 2;
    let bytes = |steps: &[Step]| scratch_bytes(steps.iter(), (N, K), threads);
    let single = product::scratch_bytes(8, N, &Slices::whole(K), threads);
    let halves = product::scratch_bytes(8, N, &Slices::split(K, 2).unwrap(), threads);
    assert!(halves > single);
    assert_eq!(bytes(&[step(Recipe::SingleWalk, 3), step(Recipe::SingleWalk, 5)]), single);
    assert_eq!(bytes(&[step(split(2), 3), step(split(2), 5)]), halves);
    let mixed = bytes(&[step(split(2), 8), step(Recipe::SingleWalk, 1)]);
    assert_eq!(mixed, halves + 8 * (512 + 256) * 2);
}
