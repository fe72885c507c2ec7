//! The GPU engine: executes steps with cuBLASLt and our own kernels.
//!
//! Matrix products use catalogued algorithms, every kernel of ours works row by row:
//! under `native` what a row is batched with cannot change its bits. This folder
//! holds the crate's only calls into CUDA; the verifier does not need it.

mod buffer;
mod caches;
mod cublaslt;
mod environment;
mod fault;
mod gemm;
mod kernels;
mod memory;
pub mod nvrtc;
mod ops;
pub mod probe;
pub mod survey;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream};

pub use buffer::Buffer;
pub use environment::{Device, Environment, EnvironmentError};

use super::{Engine, EngineError, Group};
use crate::model::Weights;
use crate::num::{Bf16, Data, Tensor};
use crate::plan::{CacheSlot, Op};
use crate::recipe::Recipe;
use crate::recipe::catalog::{Catalog, Choice};
use crate::recipe::cublaslt::{AlgorithmDescriptor, Dispatch};
use buffer::{Cache, Elements, WeightBuffer};
use cublaslt::Shape;
use fault::{device_error, expect, fault, unknown_recipe};
use gemm::Gemm;
use kernels::Kernels;
use ops::{bf16, weight};

/// Executes plans on a GPU.
pub struct CudaEngine {
    stream: Arc<CudaStream>,
    environment: Environment,
    kernels: Kernels,
    gemm: Gemm,
    weights: HashMap<String, WeightBuffer>,
    /// By sequence and slot.
    caches: BTreeMap<(usize, CacheSlot), Cache>,
    frequencies: BTreeMap<u64, CudaSlice<u32>>,
    /// The indices last used, kept because a decode step needs them in every layer.
    indices: Option<(Vec<u32>, CudaSlice<u32>)>,
    max_positions: usize,
}

impl CudaEngine {
    /// Makes an engine for sequences of at most `max_positions` tokens each, without
    /// weights ([`Self::load`], [`Self::load_weight`]). `choice` is the stack's.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if the catalogue was not measured with this GPU
    /// and these libraries; [`EngineError::Device`].
    pub fn new(
        device: &Device,
        catalog: Catalog,
        choice: Choice,
        max_positions: usize,
    ) -> Result<Self, EngineError> {
        let found = device.environment();
        catalog
            .covers(&found.gpu, &found.nvrtc, &found.cublaslt.to_string())
            .map_err(|reason| EngineError::Refused { step: "environment".into(), reason })?;
        Ok(Self {
            kernels: Kernels::load(device)?,
            gemm: Gemm::new(&device.stream, catalog, choice)?,
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
        let elements = memory::upload(&self.stream, name, elements)?;
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
        let elements = match tensor.data() {
            Data::Bf16(v) => Elements::Bf16(memory::upload(&self.stream, step, v)?),
            Data::U32(v) => {
                let words = memory::upload(&self.stream, step, v)?;
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
        // One call of the library or of a kernel computes all rows.
        if let Some(part) = group.parts.iter().find(|part| part.step.recipe != step.recipe) {
            return Err(unknown_recipe(part.step));
        }
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
            (Op::Linear { k }, Recipe::SingleWalk | Recipe::SplitKWorkspaceF32 { .. }) => {
                self.linear(step, x(0)?, k)?
            }
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

    fn read_back<'b>(&mut self, buffer: &'b Buffer) -> Result<Cow<'b, Tensor>, EngineError> {
        let step = "read back";
        let data = match &buffer.elements {
            Elements::Bf16(elements) => Data::Bf16(self.copy_back(step, elements)?),
            Elements::U32 { words, .. } => Data::U32(self.copy_back(step, words)?),
        };
        let tensor = Tensor::new(&[buffer.rows, buffer.columns], data);
        tensor.map(Cow::Owned).ok_or_else(|| EngineError::Operand {
            step: step.into(),
            what: format!("the value is not {} x {}", buffer.rows, buffer.columns),
        })
    }
}
