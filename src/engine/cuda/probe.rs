//! Measures what one instruction computes on this GPU.
//!
//! Probes bring raw outputs back; comparing them with the emulator is the
//! caller's business (`tests/gpu.rs`), as is keeping them as evidence.

#![allow(unsafe_code)] // launches

use std::collections::BTreeMap;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};

use super::device_error;
use super::environment::Device;
use super::kernels::{function, load_module};
use crate::engine::EngineError;
use crate::num::{Bf16, F32};
use crate::recipe::libdevice::sweep::{CHUNK, Function};

/// The probe kernels, loaded.
pub struct Probe {
    stream: Arc<CudaStream>,
    mma_tiles: CudaFunction,
    sweeps: BTreeMap<&'static str, CudaFunction>,
}

impl Probe {
    /// Compiles and loads the probes.
    ///
    /// # Errors
    /// [`EngineError::Device`].
    pub fn new(device: &Device) -> Result<Self, EngineError> {
        let module = load_module(device, "probe_mufu.cu", PROBE_MUFU)?;
        let mut sweeps = BTreeMap::new();
        for name in Function::ALL.map(Function::name) {
            sweeps.insert(name, function(&module, &format!("probe_{name}"))?);
        }
        let module = load_module(device, "probe_mma.cu", PROBE_MMA)?;
        let mma_tiles = function(&module, "mma_tiles")?;
        Ok(Self { stream: Arc::clone(&device.stream), mma_tiles, sweeps })
    }

    /// Outputs of a function for one chunk of inputs: the words that
    /// [`crate::recipe::libdevice::sweep::chunk_outputs`] models.
    ///
    /// # Errors
    /// [`EngineError::Device`].
    pub fn sweep(&self, swept: Function, chunk: u8) -> Result<Vec<u32>, EngineError> {
        let step = swept.name();
        let kernel = self.sweeps.get(step).ok_or_else(|| operand(step, "no such kernel"))?;
        let memory = self.stream.alloc_zeros::<u32>(CHUNK as usize);
        let mut out = memory.map_err(device_error(step, "cuMemAlloc"))?;
        let first = u32::from(chunk) * CHUNK;
        let config = LaunchConfig {
            grid_dim: (CHUNK / 256, 1, 1),
            block_dim: (256, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = self.stream.launch_builder(kernel);
        launch.arg(&mut out).arg(&first).arg(&CHUNK);
        // SAFETY: the parameters are (out, start, count); threads past `count` do
        // nothing, and `out` has `count` words.
        unsafe { launch.launch(config) }.map_err(device_error(step, "launch"))?;
        self.read(step, &out)
    }

    /// Block FMAs: for each tile, `d = c + a · bᵀ` with one `mma.sync.m16n8k16`.
    ///
    /// # Shape
    /// `a`: `[tiles, 16, 16]`; `b`: `[tiles, 8, 16]`; `c` and the result:
    /// `[tiles, 16, 8]`.
    ///
    /// # Errors
    /// [`EngineError::Operand`] if the lengths disagree; [`EngineError::Device`].
    pub fn mma_tiles(&self, a: &[Bf16], b: &[Bf16], c: &[F32]) -> Result<Vec<F32>, EngineError> {
        let step = "mma_tiles";
        let tiles = a.len() / 256;
        if a.len() != tiles * 256 || b.len() != tiles * 128 || c.len() != tiles * 128 {
            return Err(operand(step, "the operands are not the same number of whole tiles"));
        }
        let count = u32::try_from(tiles).map_err(|_| operand(step, "too many tiles"))?;
        let words: Vec<u32> = c.iter().map(|c| c.0).collect();
        let failed = || device_error(step, "cuMemcpyHtoD");
        let (a, b) = (
            self.stream.clone_htod(a).map_err(failed())?,
            self.stream.clone_htod(b).map_err(failed())?,
        );
        let c = self.stream.clone_htod(&words).map_err(failed())?;
        let memory = self.stream.alloc_zeros::<u32>(words.len());
        let mut d = memory.map_err(device_error(step, "cuMemAlloc"))?;
        let config = LaunchConfig {
            grid_dim: (count.div_ceil(4), 1, 1),
            block_dim: (32, 4, 1),
            shared_mem_bytes: 0,
        };
        if tiles > 0 {
            let mut launch = self.stream.launch_builder(&self.mma_tiles);
            launch.arg(&a).arg(&b).arg(&c).arg(&mut d).arg(&count);
            // SAFETY: one warp a tile, warps past `count` return, and every
            // operand holds `count` whole tiles.
            unsafe { launch.launch(config) }.map_err(device_error(step, "launch"))?;
        }
        Ok(self.read(step, &d)?.into_iter().map(F32).collect())
    }

    fn read(
        &self,
        step: &str,
        words: &cudarc::driver::CudaSlice<u32>,
    ) -> Result<Vec<u32>, EngineError> {
        let host = self.stream.clone_dtoh(words).map_err(device_error(step, "cuMemcpyDtoH"))?;
        self.stream.synchronize().map_err(device_error(step, "cuStreamSynchronize"))?;
        Ok(host)
    }
}

fn operand(step: &str, what: &str) -> EngineError {
    EngineError::Operand { step: step.into(), what: what.into() }
}

const PROBE_MMA: &str = include_str!("../../../kernels/probe_mma.cu");
const PROBE_MUFU: &str = include_str!("../../../kernels/probe_mufu.cu");
