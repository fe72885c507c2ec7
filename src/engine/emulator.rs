//! The CPU engine: executes steps through `recipe::*`.
//!
//! Threads divide independent outputs only (rows, heads, columns); no reduction
//! crosses a thread, so the thread count cannot change a bit.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;

use super::{Engine, EngineError, Group};
use crate::isa::mma::{MmaProfile, Simd};
use crate::model::Weights;
use crate::num::{Bf16, Data, F32, Tensor};
use crate::plan::{CacheSlot, Op, Operand, Step};
use crate::recipe::attention::HeadRows;
use crate::recipe::attention::flash2_rows::{flash2_rows, own_tiles};
use crate::recipe::elementwise::{self, SiluTable};
use crate::recipe::gemm::Walk;
use crate::recipe::rope::{AngleTable, InverseFrequencies, rope_row};
use crate::recipe::{Recipe, RecipeError, RowReduction};
use crate::recipe::{argmax, embedding, rms_norm};

/// Executes plans on the CPU with the arithmetic of one GPU.
pub struct Emulator<'a> {
    walk: Walk,
    weights: &'a Weights,
    caches: BTreeMap<CacheSlot, Vec<Bf16>>,
    angles: HashMap<u64, AngleTable>,
    silu: Option<SiluTable>,
    positions: usize,
}

impl<'a> Emulator<'a> {
    /// Makes an engine for sequences of at most `positions` tokens. `simd` says
    /// how products are computed and changes no bit.
    pub fn new(profile: &MmaProfile, simd: Simd, weights: &'a Weights, positions: usize) -> Self {
        Self {
            walk: Walk::new(profile, simd),
            weights,
            caches: BTreeMap::new(),
            angles: HashMap::new(),
            silu: None,
            positions,
        }
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

    fn cache(&self, step: &Step, operand: usize) -> Result<&[Bf16], EngineError> {
        match step.inputs.get(operand) {
            Some(Operand::Cache(slot)) => self
                .caches
                .get(slot)
                .map(Vec::as_slice)
                .ok_or_else(|| fault(step, &format!("{slot} is empty"))),
            _ => Err(fault(step, "the operand is no cache")),
        }
    }

    fn linear(&self, step: &Step, x: &[Bf16], k: usize) -> Result<Vec<Bf16>, EngineError> {
        let weight = self.weight(step)?;
        let n = step.columns;
        if weight.len() != n * k || n == 0 || k == 0 || !x.len().is_multiple_of(k) {
            return Err(fault(step, "weight and input do not fit"));
        }
        let m = x.len() / k;
        let mut out = vec![Bf16::ZERO; m * n];
        let height = height(m);
        for (x, out) in x.chunks(height * k).zip(out.chunks_mut(height * n)) {
            self.product(x, &weight, (n, k), out);
        }
        Ok(out)
    }

    /// `out = round(x · weightᵀ)`, in parallel over blocks of the output.
    fn product(&self, x: &[Bf16], weight: &[Bf16], (n, k): (usize, usize), out: &mut [Bf16]) {
        let m = x.len() / k;
        let rows =
            self.walk.rows_by(x, k, |parts, part| (0..parts).into_par_iter().map(part).collect());
        let panels = n.div_ceil(PANEL);
        let height = band(m, panels);
        let mut blocks: Vec<Vec<&mut [Bf16]>> = Vec::new();
        blocks.resize_with(m.div_ceil(height) * panels, Vec::new);
        for (blocks, band) in blocks.chunks_mut(panels).zip(out.chunks_mut(height * n)) {
            for row in band.chunks_mut(n) {
                for (block, columns) in blocks.iter_mut().zip(row.chunks_mut(PANEL)) {
                    block.push(columns);
                }
            }
        }
        blocks.into_par_iter().enumerate().for_each(|(index, block)| {
            let (band, panel) = (index / panels, index % panels);
            let weight = &weight[panel * PANEL * k..n.min((panel + 1) * PANEL) * k];
            let width = weight.len() / k;
            let range = band * height..band * height + block.len();
            let mut accumulators = vec![F32::ZERO; block.len() * width];
            self.walk.continue_some_into(&rows, range, weight, &mut accumulators);
            for (out, row) in block.into_iter().zip(accumulators.chunks_exact(width)) {
                for (out, &c) in out.iter_mut().zip(row) {
                    *out = Bf16::round(c);
                }
            }
        });
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
        (q_heads, kv_heads, head_dim): (usize, usize, usize),
    ) -> Result<Vec<Bf16>, EngineError> {
        let step = group.step();
        let keys = self.cache(step, 1)?;
        let values = self.cache(step, 2)?;
        let positions = group.positions();
        // Query heads of a key/value head lie side by side.
        let heads = q_heads / kv_heads;
        let width = heads * head_dim;
        let start = |row: usize, kv_head: usize| (row * kv_heads + kv_head) * width;
        let tiles = own_tiles(&positions);
        // The last tile's rows see most keys; begun first, they are not waited for.
        let work: Vec<(usize, &[usize])> = tiles
            .iter()
            .rev()
            .flat_map(|rows| (0..kv_heads).map(move |kv_head| (kv_head, rows.as_slice())))
            .collect();
        let results: Result<Vec<Vec<Bf16>>, RecipeError> = work
            .par_iter()
            .map(|&(kv_head, rows)| {
                let keys = HeadRows::new(keys, kv_heads, kv_head, head_dim)?;
                let values = HeadRows::new(values, kv_heads, kv_head, head_dim)?;
                let of_head = rows.iter().map(|&row| &q[start(row, kv_head)..][..width]);
                let q: Vec<Bf16> = of_head.flatten().copied().collect();
                let positions: Vec<usize> = rows
                    .iter()
                    .flat_map(|&row| std::iter::repeat_n(positions[row], heads))
                    .collect();
                let mut out = vec![Bf16::ZERO; q.len()];
                flash2_rows(&self.walk, &q, keys, values, &positions, &mut out)?;
                Ok(out)
            })
            .collect();
        let results = results.map_err(|error| refused(step, &error))?;
        let mut out = vec![Bf16::ZERO; q.len()];
        for ((kv_head, rows), result) in work.into_iter().zip(results) {
            for (&row, result) in rows.iter().zip(result.chunks_exact(width)) {
                out[start(row, kv_head)..][..width].copy_from_slice(result);
            }
        }
        Ok(out)
    }

    /// Stores the rows of a kept output at their positions.
    fn keep(&mut self, group: &Group<'_>, slot: CacheSlot, rows: &[Bf16]) {
        let columns = group.step().columns;
        let capacity = self.positions * columns;
        let cache = self.caches.entry(slot).or_insert_with(|| Vec::with_capacity(capacity));
        for (row, position) in rows.chunks(columns).zip(group.positions()) {
            let end = (position + 1) * columns;
            if cache.len() < end {
                cache.resize(end, Bf16::ZERO);
            }
            cache[end - columns..end].copy_from_slice(row);
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
            (Op::Linear { k }, Recipe::SingleWalk) => self.linear(step, x(0)?, k)?,
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
            ) => {
                return Err(EngineError::Recipe {
                    step: step.name.clone(),
                    recipe: recipe.to_string(),
                    engine: "emulator",
                });
            }
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

/// Rows that one thread computes at a time: all, or so few that every thread finds
/// several blocks of the output, but not fewer than pay for decoding the weights.
fn band(m: usize, panels: usize) -> usize {
    let bands = (4 * rayon::current_num_threads()).div_ceil(panels);
    m.div_ceil(bands).max(BAND).min(m.max(1))
}

/// Least rows of a band.
const BAND: usize = 64;

/// Output columns that one thread computes at a time.
const PANEL: usize = 64;

/// Most rows of a product computed together. They bound the decoded rows (43 MB at
/// k = 9728) and keep a panel's accumulators (128 KiB) in a core's own cache; for
/// more rows the weight is read again, which costs a hundredth of the product.
const ROWS: usize = 512;

/// Rows of a product of `m` rows that are computed together. Parts are of equal
/// height: a low one would cost as much to read the weight.
fn height(m: usize) -> usize {
    m.div_ceil(readings(m)).max(1)
}

/// How often a product of `m` rows reads its weight.
pub fn readings(m: usize) -> usize {
    m.div_ceil(ROWS).max(1)
}

/// Bytes that a product `[m, k] · [n, k]ᵀ` needs beside its operands and output.
pub fn scratch_bytes(m: usize, n: usize, k: usize, threads: usize) -> u64 {
    let height = height(m);
    let decoded = height * k * DECODED_BYTES;
    let panels = height * n.div_ceil(PANEL) * size_of::<&mut [Bf16]>();
    let accumulators = threads * height * PANEL * size_of::<F32>();
    (decoded + panels + accumulators) as u64
}

/// Bytes of one decoded element of A, of the form that takes most.
const DECODED_BYTES: usize = 8;

fn fault(step: &Step, what: &str) -> EngineError {
    EngineError::Operand { step: step.name.clone(), what: what.into() }
}

fn refused(step: &Step, error: &RecipeError) -> EngineError {
    EngineError::Refused { step: step.name.clone(), reason: error.to_string() }
}
