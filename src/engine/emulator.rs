//! The CPU engine: executes steps through `recipe::*`.
//!
//! Threads divide independent outputs only (rows, heads, columns); no reduction
//! crosses a thread, so the thread count cannot change a bit.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;

use super::heads::Attention;
use super::linear::linear;
use super::{Engine, EngineError, Group, Part, Rows};
use crate::isa::mma::{MmaProfile, Simd};
use crate::model::Weights;
use crate::num::{Bf16, Data, Tensor};
use crate::plan::{CacheSlot, Op, Operand, Step};
use crate::recipe::elementwise::{self, SiluTable};
use crate::recipe::gemm::Walk;
use crate::recipe::rope::{AngleTable, InverseFrequencies, rope_row};
use crate::recipe::{Recipe, RecipeError, RowReduction};
use crate::recipe::{argmax, embedding, rms_norm};

/// Executes plans on the CPU with the arithmetic of one GPU.
pub struct Emulator<'a> {
    walk: Walk,
    weights: &'a Weights,
    /// By sequence and slot.
    caches: BTreeMap<(usize, CacheSlot), Vec<Bf16>>,
    angles: HashMap<u64, AngleTable>,
    silu: Option<SiluTable>,
    positions: usize,
    reform: Option<Reform>,
}

/// Makes other weights of those of a product with dot products of a length, `[n, k]`;
/// `None` leaves them.
pub type Reform = fn(&Step, &[Bf16], usize) -> Option<Vec<Bf16>>;

impl<'a> Emulator<'a> {
    /// Makes an engine for sequences of at most `positions` tokens each. `simd` says
    /// how products are computed and changes no bit.
    pub fn new(profile: &MmaProfile, simd: Simd, weights: &'a Weights, positions: usize) -> Self {
        Self {
            walk: Walk::new(profile, simd),
            weights,
            caches: BTreeMap::new(),
            angles: HashMap::new(),
            silu: None,
            positions,
            reform: None,
        }
    }

    /// From now on computes products and attention with this instruction.
    pub fn set_instruction(&mut self, profile: &MmaProfile) {
        self.walk = Walk::new(profile, self.walk.simd());
    }

    /// From now on lets the weights of every product pass through this function: what a
    /// verifier tries that looks for the cause of a difference.
    pub fn set_reform(&mut self, reform: Option<Reform>) {
        self.reform = reform;
    }

    /// Takes these rows for what sequence 0 has kept in a slot, from position 0 on.
    pub fn set_cache(&mut self, slot: CacheSlot, rows: Vec<Bf16>) {
        self.caches.insert((0, slot), rows);
    }

    /// Forgets what was kept in a slot.
    pub fn clear_cache(&mut self, slot: CacheSlot) {
        self.caches.remove(&(0, slot));
    }

    fn weight(&self, step: &Step) -> Result<Cow<'a, [Bf16]>, EngineError> {
        let name = step.inputs.iter().find_map(|operand| match operand {
            Operand::Weight(name) => Some(name),
            Operand::Tokens | Operand::Value(_) | Operand::Cache(_) => None,
        });
        let name = name.ok_or_else(|| fault(step, "the step names no weight"))?;
        let weight = self.weights.tensor(name);
        Ok(weight.ok_or_else(|| fault(step, &format!("no tensor {name}")))?.elements())
    }

    fn cache(&self, sequence: usize, step: &Step, operand: usize) -> Result<&[Bf16], EngineError> {
        match step.inputs.get(operand) {
            Some(Operand::Cache(slot)) => self
                .caches
                .get(&(sequence, *slot))
                .map(Vec::as_slice)
                .ok_or_else(|| fault(step, &format!("{slot} is empty"))),
            _ => Err(fault(step, "the operand is no cache")),
        }
    }

    fn rope(
        &mut self,
        group: &Group<'_>,
        x: &[Bf16],
        theta: u64,
        head_dim: usize,
    ) -> Result<Vec<Bf16>, EngineError> {
        let step = group.step();
        let positions = group.positions();
        let columns = step.columns;
        let refused = |error: RecipeError| refused(step, &error);
        if !self.angles.contains_key(&theta) {
            let frequencies = InverseFrequencies::for_theta(theta, head_dim).map_err(refused)?;
            let table = AngleTable::new(&frequencies, self.positions).map_err(refused)?;
            self.angles.insert(theta, table);
        }
        let table = &self.angles[&theta];
        let mut out = vec![Bf16::ZERO; x.len()];
        x.par_chunks(columns)
            .zip(out.par_chunks_mut(columns))
            .zip(&positions)
            .try_for_each(|((x, out), &position)| {
                let angles = table.at(position)?;
                let heads = x.chunks(head_dim).zip(out.chunks_mut(head_dim));
                heads.into_iter().try_for_each(|(x, out)| rope_row(angles, x, out))
            })
            .map_err(refused)?;
        Ok(out)
    }

    fn attention(
        &self,
        group: &Group<'_>,
        q: &[Bf16],
        (query_heads, kv_heads, head_dim): (usize, usize, usize),
    ) -> Result<Vec<Bf16>, EngineError> {
        let step = group.step();
        let positions = group.positions();
        let one = |own: &Rows| {
            let (sequence, rows) = (own.sequence, own.rows.clone());
            let columns = step.columns;
            let queries = q.get(rows.start * columns..rows.end * columns);
            let attention = Attention {
                queries: queries.ok_or_else(|| fault(step, "the queries have too few rows"))?,
                keys: self.cache(sequence, step, 1)?,
                values: self.cache(sequence, step, 2)?,
                positions: &positions[rows],
                query_heads,
                kv_heads,
                head_dim,
            };
            attention.compute(&self.walk).map_err(|error| refused(step, &error))
        };
        // Each sequence has keys of its own.
        let parts: Result<Vec<Vec<Bf16>>, EngineError> =
            group.sequences().par_iter().map(one).collect();
        let mut parts = parts?;
        Ok(if parts.len() == 1 { parts.remove(0) } else { parts.concat() })
    }

    /// Stores the rows of a kept output at their positions.
    fn keep(&mut self, group: &Group<'_>, slot: CacheSlot, rows: &[Bf16]) {
        let columns = group.step().columns;
        let capacity = self.positions * columns;
        let mut rows = rows.chunks(columns);
        for Part { pass, .. } in &group.parts {
            let cache = self.caches.entry((pass.sequence, slot));
            let cache = cache.or_insert_with(|| Vec::with_capacity(capacity));
            for (position, row) in (pass.start..pass.start + pass.tokens).zip(rows.by_ref()) {
                let end = (position + 1) * columns;
                if cache.len() < end {
                    cache.resize(end, Bf16::ZERO);
                }
                cache[end - columns..end].copy_from_slice(row);
            }
        }
    }
}

impl Engine for Emulator<'_> {
    type Buffer = Tensor;

    fn name(&self) -> &'static str {
        "emulator"
    }

    fn upload(&mut self, tensor: &Tensor) -> Result<Tensor, EngineError> {
        Ok(tensor.clone())
    }

    fn execute(&mut self, group: &Group<'_>, inputs: &[&Tensor]) -> Result<Tensor, EngineError> {
        let step = group.step();
        let rows = group.rows();
        let columns = step.columns;
        let x = |index: usize| -> Result<&[Bf16], EngineError> {
            let tensor = inputs.get(index).ok_or_else(|| fault(step, "an operand is missing"))?;
            tensor.as_bf16().ok_or_else(|| fault(step, "an operand is not bf16"))
        };
        let refused = |error: RecipeError| refused(step, &error);
        let blank = || vec![Bf16::ZERO; rows * columns];
        // Parallel iterators end with the shortest operand.
        let whole = |index: usize| -> Result<&[Bf16], EngineError> {
            let x = x(index)?;
            let fits = x.len() == rows * columns;
            if fits { Ok(x) } else { Err(fault(step, "an operand has the wrong size")) }
        };
        let out = match (step.op, step.recipe) {
            (Op::Embedding, Recipe::Copy) => {
                let ids = inputs.first().and_then(|ids| ids.as_u32());
                let ids = ids.ok_or_else(|| fault(step, "the operand is no list of tokens"))?;
                let table = self.weight(step)?;
                let mut out = blank();
                ids.iter()
                    .zip(out.chunks_mut(columns))
                    .try_for_each(|(&id, out)| embedding::embedding_row(&table, id, out))
                    .map_err(refused)?;
                out
            }
            (Op::RmsNorm { eps, width }, Recipe::RowReduction { lanes }) => {
                let order = RowReduction::with_lanes(usize::from(lanes)).map_err(refused)?;
                let weight = self.weight(step)?;
                let mut out = blank();
                x(0)?
                    .par_chunks(width)
                    .zip(out.par_chunks_mut(width))
                    .try_for_each(|(x, out)| rms_norm::rms_norm_row(order, x, &weight, eps, out))
                    .map_err(refused)?;
                out
            }
            (Op::Linear { k }, Recipe::SingleWalk | Recipe::SplitKWorkspaceF32 { .. }) => {
                let weight = self.weight(step)?;
                let other = self.reform.and_then(|reform| reform(step, &weight, k));
                linear(&self.walk, group, x(0)?, other.as_deref().unwrap_or(&weight), k)?
            }
            (Op::Rope { theta, head_dim }, Recipe::RopeBf16) => {
                self.rope(group, x(0)?, theta, head_dim)?
            }
            (Op::Attention { q_heads, kv_heads, head_dim }, Recipe::Flash2 { kv_tile: 64 }) => {
                self.attention(group, x(0)?, (q_heads, kv_heads, head_dim))?
            }
            (Op::Add, Recipe::Elementwise) => {
                let (x, y) = (whole(0)?, whole(1)?);
                let mut out = blank();
                x.par_chunks(columns)
                    .zip(y.par_chunks(columns))
                    .zip(out.par_chunks_mut(columns))
                    .try_for_each(|((x, y), out)| elementwise::add_row(x, y, out))
                    .map_err(refused)?;
                out
            }
            (Op::SiluMul, Recipe::Elementwise) => {
                let (gate, up) = (whole(0)?, whole(1)?);
                let silu = self.silu.get_or_insert_default();
                let mut out = blank();
                gate.par_chunks(columns)
                    .zip(up.par_chunks(columns))
                    .zip(out.par_chunks_mut(columns))
                    .try_for_each(|((gate, up), out)| silu.mul_row(gate, up, out))
                    .map_err(refused)?;
                out
            }
            (Op::LastToken, Recipe::Copy) => {
                let mut row = 0;
                let x = x(0)?;
                let mut out = blank();
                for (part, out) in group.parts.iter().zip(out.chunks_mut(columns)) {
                    row += part.pass.tokens;
                    out.copy_from_slice(&x[(row - 1) * columns..row * columns]);
                }
                out
            }
            (Op::Argmax, Recipe::LowestIndex) => {
                let logits = x(0)?;
                let tokens: Result<Vec<u32>, RecipeError> = logits
                    .par_chunks(logits.len() / rows)
                    .map(|row| argmax::argmax_row(row).map(|index| index as u32))
                    .collect();
                let tokens = Data::U32(tokens.map_err(refused)?);
                return Tensor::new(&[rows, 1], tokens).ok_or_else(|| fault(step, "tokens"));
            }
            (
                Op::Embedding
                | Op::RmsNorm { .. }
                | Op::Linear { .. }
                | Op::Rope { .. }
                | Op::Attention { .. }
                | Op::Add
                | Op::SiluMul
                | Op::LastToken
                | Op::Argmax,
                recipe,
            ) => return Err(unknown(step, recipe)),
        };
        if out.len() != rows * columns {
            return Err(fault(step, "the output has the wrong size"));
        }
        if let Some(slot) = step.keeps {
            self.keep(group, slot, &out);
        }
        Ok(Tensor::matrix(rows, columns, out))
    }

    fn read_back<'b>(&mut self, buffer: &'b Tensor) -> Result<Cow<'b, Tensor>, EngineError> {
        Ok(Cow::Borrowed(buffer))
    }
}

pub(super) fn fault(step: &Step, what: &str) -> EngineError {
    EngineError::Operand { step: step.name.clone(), what: what.into() }
}

pub(super) fn unknown(step: &Step, recipe: Recipe) -> EngineError {
    let (step, recipe) = (step.name.clone(), recipe.to_string());
    EngineError::Recipe { step, recipe, engine: "emulator" }
}

pub(super) fn refused(step: &Step, error: &RecipeError) -> EngineError {
    EngineError::Refused { step: step.name.clone(), reason: error.to_string() }
}
