//! Outputs of executed steps, computed again by the scalar text.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::BenchError;
use super::super::operands::Random;
use crate::engine::{Group, linear};
use crate::isa::mma::MmaProfile;
use crate::model::Weights;
use crate::num::{Bf16, Tensor};
use crate::plan::{CacheSlot, Half, Op, Operand, Step};
use crate::recipe::attention::{HeadRows, flash2::flash2_row};
use crate::recipe::rope::{InverseFrequencies, rope_row};
use crate::recipe::split_k::{Slices, split_walk};
use crate::recipe::{Recipe, RecipeError, RowReduction};
use crate::recipe::{argmax, elementwise, embedding, rms_norm};

/// Checks some outputs of every step.
pub(super) struct Sample<'a> {
    mma: &'a MmaProfile,
    weights: &'a Weights,
    /// Rows kept by the layer under way, by position.
    kept: HashMap<CacheSlot, Vec<Bf16>>,
    random: Random,
    /// Steps checked (count).
    pub(super) steps: usize,
    /// Outputs compared (count).
    pub(super) outputs: usize,
}

/// Outputs of the scalar text, and where they are in the whole.
struct Again {
    first: usize,
    expected: Vec<Bf16>,
}

impl<'a> Sample<'a> {
    pub(super) fn new(mma: &'a MmaProfile, weights: &'a Weights) -> Self {
        let (kept, random) = (HashMap::new(), Random::new(1));
        Self { mma, weights, kept, random, steps: 0, outputs: 0 }
    }

    /// Compares outputs of one execution at places that change with every call.
    pub(super) fn check(
        &mut self,
        group: &Group<'_>,
        inputs: &[&Tensor],
        output: &Tensor,
    ) -> Result<(), BenchError> {
        let step = group.step();
        if step.op == Op::Argmax {
            return self.check_choice(step, inputs, output);
        }
        let found = output.as_bf16().ok_or_else(|| odd(step, "the output is not bf16"))?;
        self.keep(group, found);
        let places = if matches!(step.op, Op::Linear { .. }) { PRODUCTS } else { 1 };
        for _ in 0..places {
            let Again { first, expected } = self.again(group, inputs, found)?;
            self.compare(step, first, &expected, &found[first..first + expected.len()])?;
        }
        self.steps += 1;
        Ok(())
    }

    /// One run of outputs of the step, computed by the functions of `recipe`.
    fn again(
        &mut self,
        group: &Group<'_>,
        inputs: &[&Tensor],
        found: &[Bf16],
    ) -> Result<Again, BenchError> {
        let step = group.step();
        let columns = step.columns;
        // Outputs that belong together: a row, a head of one, or a single output.
        let width = match step.op {
            Op::RmsNorm { width, .. } => width,
            Op::Rope { head_dim, .. } | Op::Attention { head_dim, .. } => head_dim,
            Op::Linear { .. } => 1,
            Op::Embedding | Op::Add | Op::SiluMul | Op::LastToken | Op::Argmax => columns,
        };
        let first = self.random.below(found.len() / width) * width;
        let (row, own) = (first / columns, first..first + width);
        let x = |index: usize| {
            let x = inputs.get(index).and_then(|tensor| tensor.as_bf16());
            x.ok_or_else(|| odd(step, "an operand is missing"))
        };
        let mut out = vec![Bf16::ZERO; width];
        let done = match step.op {
            Op::Embedding => {
                let ids = inputs.first().and_then(|ids| ids.as_u32());
                let ids = ids.ok_or_else(|| odd(step, "the operand is no list of tokens"))?;
                embedding::embedding_row(&self.weight(step)?, ids[row], &mut out)
            }
            Op::RmsNorm { eps, .. } => {
                let (order, weight) = (order(step)?, self.weight(step)?);
                rms_norm::rms_norm_row(order, &x(0)?[own], &weight, eps, &mut out)
            }
            Op::Linear { k } => {
                let (weight, column) = (self.weight(step)?, first % columns);
                let (a, b) = (&x(0)?[row * k..][..k], &weight[column * k..][..k]);
                let sum = split_walk(self.mma, a, b, &slices(group, row, k)?);
                out[0] = Bf16::round(sum);
                Ok(())
            }
            Op::Rope { theta, head_dim } => {
                let angles = InverseFrequencies::for_theta(theta, head_dim)
                    .and_then(|frequencies| frequencies.angles(group.positions()[row]));
                let x = &x(0)?[own];
                angles.and_then(|angles| rope_row(&angles, x, &mut out))
            }
            Op::Attention { q_heads, kv_heads, head_dim } => {
                let head = first / head_dim % q_heads / (q_heads / kv_heads);
                let (keys, values) = (self.cache(step, Half::Key)?, self.cache(step, Half::Value)?);
                let (position, q) = (group.positions()[row], &x(0)?[own]);
                HeadRows::new(keys, kv_heads, head, head_dim).and_then(|keys| {
                    let values = HeadRows::new(values, kv_heads, head, head_dim)?;
                    flash2_row(self.mma, q, keys, values, position, &mut out)
                })
            }
            Op::Add => elementwise::add_row(&x(0)?[own.clone()], &x(1)?[own], &mut out),
            Op::SiluMul => elementwise::silu_mul_row(&x(0)?[own.clone()], &x(1)?[own], &mut out),
            Op::LastToken => {
                let parts = group.parts.iter().take(row + 1);
                let end = parts.map(|part| part.pass.tokens).sum::<usize>() * columns;
                out.copy_from_slice(&x(0)?[end - columns..end]);
                Ok(())
            }
            Op::Argmax => return Err(odd(step, "a choice is compared elsewhere")),
        };
        done.map_err(|error: RecipeError| odd(step, &error.to_string()))?;
        Ok(Again { first, expected: out })
    }

    fn check_choice(
        &mut self,
        step: &Step,
        inputs: &[&Tensor],
        output: &Tensor,
    ) -> Result<(), BenchError> {
        let chosen = output.as_u32().ok_or_else(|| odd(step, "the output is no token"))?;
        let logits = inputs.first().and_then(|logits| logits.as_bf16()).unwrap_or_default();
        let row = self.random.below(chosen.len());
        let width = logits.len() / chosen.len();
        let expected = argmax::argmax_row(&logits[row * width..(row + 1) * width]);
        let expected = expected.map_err(|error| odd(step, &error.to_string()))?;
        if expected as u32 != chosen[row] {
            let (expected, found) = (expected.to_string(), chosen[row].to_string());
            return Err(differs(step, row, expected, found));
        }
        self.steps += 1;
        self.outputs += 1;
        Ok(())
    }

    fn compare(
        &mut self,
        step: &Step,
        first: usize,
        expected: &[Bf16],
        found: &[Bf16],
    ) -> Result<(), BenchError> {
        match expected.iter().zip(found).position(|(expected, found)| expected != found) {
            Some(at) => {
                let [expected, found] = [expected[at], found[at]].map(|x| format!("{x:?}"));
                Err(differs(step, first + at, expected, found))
            }
            None => {
                self.outputs += expected.len();
                Ok(())
            }
        }
    }

    /// Keeps rows as the engine does, for the layer under way only.
    fn keep(&mut self, group: &Group<'_>, rows: &[Bf16]) {
        let Some(slot) = group.step().keeps else { return };
        self.kept.retain(|kept, _| kept.layer == slot.layer);
        let columns = group.step().columns;
        let cache = self.kept.entry(slot).or_default();
        for (row, position) in rows.chunks(columns).zip(group.positions()) {
            let end = (position + 1) * columns;
            if cache.len() < end {
                cache.resize(end, Bf16::ZERO);
            }
            cache[end - columns..end].copy_from_slice(row);
        }
    }

    fn cache(&self, step: &Step, half: Half) -> Result<&[Bf16], BenchError> {
        let rows = step.layer.and_then(|layer| self.kept.get(&CacheSlot { layer, half }));
        rows.map(Vec::as_slice).ok_or_else(|| odd(step, "nothing was kept"))
    }

    fn weight(&self, step: &Step) -> Result<Cow<'a, [Bf16]>, BenchError> {
        let name = step.inputs.iter().find_map(|operand| match operand {
            Operand::Weight(name) => Some(name),
            Operand::Tokens | Operand::Value(_) | Operand::Cache(_) => None,
        });
        let weight = name.and_then(|name| self.weights.tensor(name));
        weight.map(|weight| weight.elements()).ok_or_else(|| odd(step, "no weight"))
    }
}

/// The slices of K of a row's products.
fn slices(group: &Group<'_>, row: usize, k: usize) -> Result<Slices, BenchError> {
    let step = group.step();
    let shares = linear::shares(group.parts.iter().map(|part| part.step));
    let own = shares.iter().find(|share| share.rows.iter().any(|rows| rows.contains(&row)));
    let own = own.ok_or_else(|| odd(step, "the row is no part's"))?;
    let slices = Slices::of(own.recipe, k).map_err(|error| odd(step, &error.to_string()))?;
    slices.ok_or_else(|| odd(step, "the recipe is no product's"))
}

/// The order of a norm's row sum.
fn order(step: &Step) -> Result<RowReduction, BenchError> {
    match step.recipe {
        Recipe::RowReduction { lanes } => {
            RowReduction::with_lanes(lanes.into()).map_err(|error| odd(step, &error.to_string()))
        }
        Recipe::Copy
        | Recipe::SingleWalk
        | Recipe::SplitKWorkspaceF32 { .. }
        | Recipe::RopeBf16
        | Recipe::Flash2 { .. }
        | Recipe::Elementwise
        | Recipe::LowestIndex => Err(odd(step, "the recipe has no order of the row sum")),
    }
}

fn differs(step: &Step, index: usize, expected: String, found: String) -> BenchError {
    let (what, oracle) = (step.name.clone(), super::super::SCALAR);
    BenchError::Differs { what, index, oracle, expected, found }
}

/// A step that the scalar text could not follow: nothing is reported then.
fn odd(step: &Step, problem: &str) -> BenchError {
    BenchError::Step { step: step.name.clone(), problem: problem.into() }
}

/// Outputs of a product that are compared; other steps have a row or a head.
const PRODUCTS: usize = 16;
