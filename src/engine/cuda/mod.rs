//! The GPU engine: executes steps with cuBLASLt and our own kernels.
//!
//! Matrix products use catalogued algorithms without split-K, every kernel works
//! row by row: what a row is batched with cannot change its bits. This folder
//! holds the crate's only calls into CUDA; the verifier does not need it.

mod buffer;
mod environment;
mod gemm;
mod kernels;
pub mod nvrtc;
pub mod probe;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream};

pub use buffer::Buffer;
pub use environment::{Device, Environment, EnvironmentError};

use super::{Engine, EngineError, Group};
use crate::model::Weights;
use crate::num::{Bf16, Data, Tensor};
use crate::plan::{CacheSlot, Op, Operand, Step};
use crate::recipe::Recipe;
use crate::recipe::catalog::Catalog;
use crate::recipe::cublaslt::{AlgorithmDescriptor, Dispatch};
use crate::recipe::rope::InverseFrequencies;
use buffer::{Cache, Elements, WeightBuffer};
use gemm::{Gemm, Shape};
use kernels::{Heads, Kernels};

/// Executes plans on a GPU.
pub struct CudaEngine {
    stream: Arc<CudaStream>,
    environment: Environment,
    kernels: Kernels,
    gemm: Gemm,
    weights: HashMap<String, WeightBuffer>,
    caches: BTreeMap<CacheSlot, Cache>,
    frequencies: BTreeMap<u64, CudaSlice<u32>>,
    /// The indices last used, kept because a decode step needs them in every layer.
    indices: Option<(Vec<u32>, CudaSlice<u32>)>,
    max_positions: usize,
}

impl CudaEngine {
    /// Makes an engine for sequences of at most `max_positions` tokens, without
    /// weights ([`Self::load`], [`Self::load_weight`]).
    ///
    /// # Errors
    /// [`EngineError::Refused`] if the catalogue was not measured with this GPU
    /// and these libraries; [`EngineError::Device`].
    pub fn new(
        device: &Device,
        catalog: Catalog,
        max_positions: usize,
    ) -> Result<Self, EngineError> {
        let found = device.environment();
        catalog
            .covers(&found.gpu, &found.nvrtc, &found.cublaslt.to_string())
            .map_err(|reason| EngineError::Refused { step: "environment".into(), reason })?;
        Ok(Self {
            kernels: Kernels::load(device)?,
            gemm: Gemm::new(&device.stream, catalog)?,
            environment: device.environment().clone(),
            stream: Arc::clone(&device.stream),
            weights: HashMap::new(),
            caches: BTreeMap::new(),
            frequencies: BTreeMap::new(),
            indices: None,
            max_positions,
        })
    }

    /// Puts every tensor of a model on the GPU.
    ///
    /// # Errors
    /// As [`Self::load_weight`].
    pub fn load(&mut self, weights: &Weights) -> Result<(), EngineError> {
        for name in weights.names() {
            if let Some(weight) = weights.tensor(name) {
                self.load_weight(name, weight.shape, &weight.elements())?;
            }
        }
        Ok(())
    }

    /// Puts one tensor on the GPU, in place of an earlier one of its name.
    ///
    /// # Errors
    /// [`EngineError::Operand`] if the shape does not fit; [`EngineError::Device`].
    pub fn load_weight(
        &mut self,
        name: &str,
        shape: &[usize],
        elements: &[Bf16],
    ) -> Result<(), EngineError> {
        if shape.iter().product::<usize>() != elements.len() {
            let what = format!("{} elements do not fit shape {shape:?}", elements.len());
            return Err(EngineError::Operand { step: name.into(), what });
        }
        let elements =
            self.stream.clone_htod(elements).map_err(device_error(name, "cuMemcpyHtoD"))?;
        self.weights.insert(name.into(), WeightBuffer { shape: shape.to_vec(), elements });
        Ok(())
    }

    /// The GPU and the software that drives it.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Distinct matrix products computed so far and their algorithms, ascending.
    pub fn dispatch(&self) -> Vec<Dispatch> {
        self.gemm.dispatch()
    }

    /// The algorithm that a product `[m, k] · [n, k]ᵀ` gets, without computing it.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if the catalogue knows none; [`EngineError::Device`].
    pub fn algorithm(
        &mut self,
        m: usize,
        n: usize,
        k: usize,
    ) -> Result<AlgorithmDescriptor, EngineError> {
        self.gemm.choose("algorithm", Shape { m, n, k }).map(|(descriptor, _)| descriptor)
    }

    fn cache(&self, step: &Step, operand: usize) -> Result<&Cache, EngineError> {
        let Some(Operand::Cache(slot)) = step.inputs.get(operand) else {
            return Err(fault(step, format!("operand {operand} is no cache")));
        };
        self.caches.get(slot).ok_or_else(|| fault(step, format!("{slot} is empty")))
    }

    /// Puts indices on the GPU unless they are there already.
    fn upload_indices(&mut self, step: &Step, indices: Vec<u32>) -> Result<(), EngineError> {
        if self.indices.as_ref().is_none_or(|(held, _)| *held != indices) {
            let failed = device_error(&step.name, "cuMemcpyHtoD");
            let on_device = self.stream.clone_htod(&indices).map_err(failed)?;
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

    fn embedding(&self, step: &Step, tokens: &Buffer) -> Result<CudaSlice<Bf16>, EngineError> {
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

    fn linear(
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

    fn rope(
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
            let failed = device_error(&step.name, "cuMemcpyHtoD");
            let on_device = self.stream.clone_htod(&words).map_err(failed)?;
            self.frequencies.insert(theta, on_device);
        }
        expect(step, "head size", HEAD_DIM, head_dim)?;
        self.upload_indices(step, positions)?;
        let (positions, _) = self.indices(step)?;
        self.kernels.rope(&step.name, bf16(step, x)?, positions, &self.frequencies[&theta])
    }

    fn attention(
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
        let (keys, values) = (self.cache(step, 1)?, self.cache(step, 2)?);
        let (positions, largest) = self.indices(step)?;
        for cache in [keys, values] {
            expect(step, "columns of a cache", kv_heads * head_dim, cache.columns)?;
            if largest as usize >= cache.kept {
                let what = format!("position {largest}, but {} rows are kept", cache.kept);
                return Err(fault(step, what));
            }
        }
        self.kernels.attention(
            &step.name,
            bf16(step, q)?,
            (positions, largest),
            (&keys.elements, &values.elements),
            Heads { kv: kv_heads, group: q_heads / kv_heads },
        )
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

    fn last_token(
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

    /// Stores the rows of a kept output at their positions.
    fn keep(
        &mut self,
        group: &Group<'_>,
        slot: CacheSlot,
        output: &CudaSlice<Bf16>,
    ) -> Result<(), EngineError> {
        let step = group.step();
        let columns = step.columns;
        let failed = |call| device_error(&step.name, call);
        let cache = match self.caches.entry(slot) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let elements = self.stream.alloc_zeros(self.max_positions * columns);
                let elements = elements.map_err(failed("cuMemAlloc"))?;
                entry.insert(Cache { columns, kept: 0, elements })
            }
        };
        expect(step, "columns of the cache", cache.columns, columns)?;
        let mut row = 0;
        for part in &group.parts {
            let (start, end) = (part.pass.start, part.pass.start + part.pass.tokens);
            expect(step, "rows of a kept step", part.pass.tokens, part.step.rows)?;
            if start > cache.kept || end > self.max_positions {
                let what = format!(
                    "positions {start}..{end}, but {} rows are kept of {}",
                    cache.kept, self.max_positions
                );
                return Err(fault(step, what));
            }
            let rows = row * columns..(row + part.pass.tokens) * columns;
            row += part.pass.tokens;
            let source = output.try_slice(rows);
            let target = cache.elements.try_slice_mut(start * columns..end * columns);
            let (Some(source), Some(mut target)) = (source, target) else {
                return Err(fault(step, "the output has too few rows".into()));
            };
            let copied = self.stream.memcpy_dtod(&source, &mut target);
            copied.map_err(failed("cuMemcpyDtoD"))?;
            cache.kept = cache.kept.max(end);
        }
        Ok(())
    }

    fn copy_back<T: cudarc::driver::DeviceRepr>(
        &self,
        step: &str,
        elements: &CudaSlice<T>,
    ) -> Result<Vec<T>, EngineError> {
        let host = self.stream.clone_dtoh(elements).map_err(device_error(step, "cuMemcpyDtoH"))?;
        self.stream.synchronize().map_err(device_error(step, "cuStreamSynchronize"))?;
        Ok(host)
    }
}

impl Engine for CudaEngine {
    type Buffer = Buffer;

    fn name(&self) -> &'static str {
        "cuda"
    }

    fn upload(&mut self, tensor: &Tensor) -> Result<Buffer, EngineError> {
        let step = "upload";
        let &[rows, columns] = tensor.shape() else {
            let what = format!("a value of shape {:?} is no matrix", tensor.shape());
            return Err(EngineError::Operand { step: step.into(), what });
        };
        let failed = device_error(step, "cuMemcpyHtoD");
        let elements = match tensor.data() {
            Data::Bf16(v) => Elements::Bf16(self.stream.clone_htod(v).map_err(failed)?),
            Data::U32(v) => {
                let words = self.stream.clone_htod(v).map_err(failed)?;
                Elements::U32 { words, largest: v.iter().max().copied() }
            }
            Data::F32(_) => {
                let what = "no step takes binary32 values".into();
                return Err(EngineError::Operand { step: step.into(), what });
            }
        };
        Ok(Buffer { rows, columns, elements })
    }

    fn execute(&mut self, group: &Group<'_>, inputs: &[&Buffer]) -> Result<Buffer, EngineError> {
        let step = group.step();
        let rows = group.rows();
        let x = |index: usize| {
            let missing = || fault(step, format!("operand {index} is missing"));
            inputs.get(index).copied().ok_or_else(missing)
        };
        let output = match (step.op, step.recipe) {
            (Op::Embedding, Recipe::Copy) => self.embedding(step, x(0)?)?,
            (Op::RmsNorm { eps, width }, Recipe::RowReduction { lanes: 32 }) => {
                let weight = weight(&self.weights, step, 1)?;
                expect(step, "elements of the weight", width, weight.elements.len())?;
                expect(step, "columns of x", step.columns, x(0)?.columns)?;
                self.kernels.rms_norm(&step.name, bf16(step, x(0)?)?, &weight.elements, eps)?
            }
            (Op::Linear { k }, Recipe::SingleWalk) => self.linear(step, x(0)?, k)?,
            (Op::Rope { theta, head_dim }, Recipe::RopeBf16) => {
                self.rope(group, x(0)?, theta, head_dim)?
            }
            (Op::Attention { q_heads, kv_heads, head_dim }, Recipe::Flash2 { kv_tile: 64 }) => {
                self.attention(group, x(0)?, (q_heads, kv_heads, head_dim))?
            }
            (Op::Add, Recipe::Elementwise) => {
                self.kernels.add(&step.name, bf16(step, x(0)?)?, bf16(step, x(1)?)?)?
            }
            (Op::SiluMul, Recipe::Elementwise) => {
                self.kernels.silu_mul(&step.name, bf16(step, x(0)?)?, bf16(step, x(1)?)?)?
            }
            (Op::LastToken, Recipe::Copy) => self.last_token(group, x(0)?)?,
            (Op::Argmax, Recipe::LowestIndex) => {
                let logits = x(0)?;
                expect(step, "rows", rows, logits.rows)?;
                let words = self.kernels.argmax(&step.name, bf16(step, logits)?, rows)?;
                let elements = Elements::U32 { words, largest: None };
                return Ok(Buffer { rows, columns: step.columns, elements });
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
                _,
            ) => return Err(unknown_recipe(step)),
        };
        expect(step, "elements of the output", rows * step.columns, output.len())?;
        if let Some(slot) = step.keeps {
            self.keep(group, slot, &output)?;
        }
        Ok(Buffer { rows, columns: step.columns, elements: Elements::Bf16(output) })
    }

    fn read_back(&mut self, buffer: &Buffer) -> Result<Tensor, EngineError> {
        let step = "read back";
        let data = match &buffer.elements {
            Elements::Bf16(elements) => Data::Bf16(self.copy_back(step, elements)?),
            Elements::U32 { words, .. } => Data::U32(self.copy_back(step, words)?),
        };
        let tensor = Tensor::new(&[buffer.rows, buffer.columns], data);
        tensor.ok_or_else(|| EngineError::Operand {
            step: step.into(),
            what: format!("the value is not {} x {}", buffer.rows, buffer.columns),
        })
    }
}

/// The weight that a step names; not a method, so that other fields stay free.
fn weight<'a>(
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

fn bf16<'a>(step: &Step, buffer: &'a Buffer) -> Result<&'a CudaSlice<Bf16>, EngineError> {
    match &buffer.elements {
        Elements::Bf16(elements) => Ok(elements),
        Elements::U32 { .. } => Err(fault(step, "an operand is not bf16".into())),
    }
}

fn expect(step: &Step, what: &str, expected: usize, found: usize) -> Result<(), EngineError> {
    if expected == found {
        return Ok(());
    }
    Err(fault(step, format!("{what}: {found}, expected {expected}")))
}

fn fault(step: &Step, what: String) -> EngineError {
    EngineError::Operand { step: step.name.clone(), what }
}

fn unknown_recipe(step: &Step) -> EngineError {
    EngineError::Recipe { step: step.name.clone(), recipe: step.recipe.to_string(), engine: "cuda" }
}

/// Wraps a library's error; for `map_err`.
fn device_error<E: std::fmt::Display>(
    step: &str,
    call: &'static str,
) -> impl FnOnce(E) -> EngineError {
    let step = step.to_owned();
    move |error| EngineError::Device { step, call, reason: error.to_string() }
}

const HEAD_DIM: usize = 128;
