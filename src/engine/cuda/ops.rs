//! Operations whose operands need more than a length: each checks them, then launches.
//!
//! Which recipe an operation has is decided in [`super`]; how a kernel is called,
//! in [`super::kernels`].

use std::collections::HashMap;

use cudarc::driver::CudaSlice;

use super::buffer::{Buffer, Elements, WeightBuffer};
use super::cublaslt::Shape;
use super::fault::{expect, fault, unknown_recipe};
use super::kernels::Heads;
use super::{CudaEngine, memory};
use crate::engine::{EngineError, Group, Rows};
use crate::num::Bf16;
use crate::plan::{Operand, Step};
use crate::recipe::rope::InverseFrequencies;

impl CudaEngine {
    pub(super) fn embedding(
        &self,
        step: &Step,
        tokens: &Buffer,
    ) -> Result<CudaSlice<Bf16>, EngineError> {
        let table = weight(&self.weights, step, 2)?;
        let (vocabulary, hidden) = (table.shape[0], table.shape[1]);
        expect(step, "columns of the embedding", step.columns, hidden)?;
        let Elements::U32 { words, largest } = &tokens.elements else {
            return Err(fault(step, "the operand is no list of tokens".into()));
        };
        let largest = match largest {
            Some(largest) => *largest,
            None => self.copy_back(&step.name, words)?.into_iter().max().unwrap_or(0),
        };
        if largest as usize >= vocabulary {
            let reason = format!("token {largest} is outside a vocabulary of {vocabulary}");
            return Err(EngineError::Refused { step: step.name.clone(), reason });
        }
        self.kernels.gather_rows(&step.name, &table.elements, (words, largest), hidden)
    }

    pub(super) fn linear(
        &mut self,
        step: &Step,
        x: &Buffer,
        k: usize,
    ) -> Result<CudaSlice<Bf16>, EngineError> {
        let shape = Shape { m: x.rows, n: step.columns, k };
        expect(step, "columns of x", k, x.columns)?;
        let weight = weight(&self.weights, step, 2)?;
        if weight.shape != [shape.n, k] {
            let what = format!("weight of shape {:?}, expected [{}, {k}]", weight.shape, shape.n);
            return Err(fault(step, what));
        }
        let (_, recipe) = self.gemm.choose(&step.name, shape)?;
        if recipe != step.recipe {
            return Err(unknown_recipe(step));
        }
        self.gemm.multiply(&step.name, shape, bf16(step, x)?, &weight.elements)
    }

    pub(super) fn rope(
        &mut self,
        group: &Group<'_>,
        x: &Buffer,
        theta: u64,
        head_dim: usize,
    ) -> Result<CudaSlice<Bf16>, EngineError> {
        let step = group.step();
        let positions = self.positions(group, x)?;
        if !self.frequencies.contains_key(&theta) {
            let words = InverseFrequencies::for_theta(theta, head_dim).map_err(|error| {
                EngineError::Refused { step: step.name.clone(), reason: error.to_string() }
            })?;
            let words: Vec<u32> = words.words().iter().map(|word| word.0).collect();
            let on_device = memory::upload(&self.stream, &step.name, &words)?;
            self.frequencies.insert(theta, on_device);
        }
        expect(step, "head size", HEAD_DIM, head_dim)?;
        self.upload_indices(step, positions)?;
        let (positions, _) = self.indices(step)?;
        self.kernels.rope(&step.name, bf16(step, x)?, positions, &self.frequencies[&theta])
    }

    pub(super) fn attention(
        &mut self,
        group: &Group<'_>,
        q: &Buffer,
        (q_heads, kv_heads, head_dim): (usize, usize, usize),
    ) -> Result<CudaSlice<Bf16>, EngineError> {
        let step = group.step();
        expect(step, "head size", HEAD_DIM, head_dim)?;
        if kv_heads == 0 || !q_heads.is_multiple_of(kv_heads) {
            return Err(fault(step, format!("{q_heads} query heads over {kv_heads}")));
        }
        let positions = self.positions(group, q)?;
        self.upload_indices(step, positions)?;
        let (on_device, _) = self.indices(step)?;
        let positions = group.positions();
        let q = bf16(step, q)?;
        let heads = Heads { kv: kv_heads, group: q_heads / kv_heads };
        let mut out = memory::zeros(&self.stream, &step.name, q.len())?;
        // One launch a sequence: each has keys of its own, at an address of their own.
        for Rows { sequence, rows } in group.sequences() {
            let (keys, values) = (self.cache(sequence, step, 1)?, self.cache(sequence, step, 2)?);
            let largest = positions[rows.clone()].iter().max().copied().unwrap_or(0);
            for cache in [keys, values] {
                expect(step, "columns of a cache", kv_heads * head_dim, cache.columns)?;
                if largest >= cache.kept {
                    let what = format!("position {largest}, but {} rows are kept", cache.kept);
                    return Err(fault(step, what));
                }
            }
            let own = rows.start * step.columns..rows.end * step.columns;
            let views =
                (q.try_slice(own.clone()), on_device.try_slice(rows), out.try_slice_mut(own));
            let (Some(q), Some(on_device), Some(mut out)) = views else {
                return Err(fault(step, "the queries have too few rows".into()));
            };
            self.kernels.attention(
                &step.name,
                &q,
                (&on_device, largest),
                (&keys.elements, &values.elements),
                heads,
                &mut out,
            )?;
        }
        Ok(out)
    }

    /// Position of every row of a value with one row a token.
    fn positions(&self, group: &Group<'_>, x: &Buffer) -> Result<Vec<u32>, EngineError> {
        let step = group.step();
        let positions = group.positions();
        expect(step, "rows", positions.len(), x.rows)?;
        let limit = self.max_positions;
        let position = |position: usize| {
            // Also below 2^24, where positions are exact in binary32 (spec/ops.md, rope, C3).
            let known = position < limit && position < 1 << 24;
            let word = u32::try_from(position).ok().filter(|_| known);
            word.ok_or_else(|| fault(step, format!("position {position} is outside 0..{limit}")))
        };
        positions.into_iter().map(position).collect()
    }

    pub(super) fn last_token(
        &mut self,
        group: &Group<'_>,
        x: &Buffer,
    ) -> Result<CudaSlice<Bf16>, EngineError> {
        let step = group.step();
        let mut end = 0;
        let mut last = Vec::with_capacity(group.parts.len());
        for part in &group.parts {
            end += part.pass.tokens;
            let row = u32::try_from(end).ok().and_then(|end| end.checked_sub(1));
            last.push(row.ok_or_else(|| fault(step, format!("row {end} of the pass")))?);
        }
        expect(step, "rows", end, x.rows)?;
        expect(step, "columns", step.columns, x.columns)?;
        self.upload_indices(step, last)?;
        let indices = self.indices(step)?;
        self.kernels.gather_rows(&step.name, bf16(step, x)?, indices, step.columns)
    }

    /// Puts indices on the GPU unless they are there already.
    fn upload_indices(&mut self, step: &Step, indices: Vec<u32>) -> Result<(), EngineError> {
        if self.indices.as_ref().is_none_or(|(held, _)| *held != indices) {
            let on_device = memory::upload(&self.stream, &step.name, &indices)?;
            self.indices = Some((indices, on_device));
        }
        Ok(())
    }

    /// The indices that [`Self::upload_indices`] put there, and the largest.
    fn indices(&self, step: &Step) -> Result<(&CudaSlice<u32>, u32), EngineError> {
        self.indices
            .as_ref()
            .and_then(|(held, on_device)| Some((on_device, *held.iter().max()?)))
            .ok_or_else(|| fault(step, "there are no rows".into()))
    }
}

/// The weight that a step names; not a method, so that other fields stay free.
pub(super) fn weight<'a>(
    weights: &'a HashMap<String, WeightBuffer>,
    step: &Step,
    rank: usize,
) -> Result<&'a WeightBuffer, EngineError> {
    let name = step.inputs.iter().find_map(|operand| match operand {
        Operand::Weight(name) => Some(name),
        Operand::Tokens | Operand::Value(_) | Operand::Cache(_) => None,
    });
    let name = name.ok_or_else(|| fault(step, "the step names no weight".into()))?;
    let weight = weights.get(name);
    let weight = weight.ok_or_else(|| fault(step, format!("no tensor {name}")))?;
    if weight.shape.len() != rank {
        return Err(fault(step, format!("{name} has shape {:?}", weight.shape)));
    }
    Ok(weight)
}

pub(super) fn bf16<'a>(
    step: &Step,
    buffer: &'a Buffer,
) -> Result<&'a CudaSlice<Bf16>, EngineError> {
    match &buffer.elements {
        Elements::Bf16(elements) => Ok(elements),
        Elements::U32 { .. } => Err(fault(step, "an operand is not bf16".into())),
    }
}

const HEAD_DIM: usize = 128;
