//! The compiled kernels and their launches.
//!
//! A launch checks every length against the kernel's own indexing first, so a
//! wrong operand is an error and never an access out of bounds.

#![allow(unsafe_code)] // launches

use std::sync::Arc;

use cudarc::driver::{
    CudaFunction, CudaModule, CudaSlice, CudaStream, CudaView, CudaViewMut, LaunchArgs,
    LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;

use super::environment::Device;
use super::fault::device_error;
use super::{memory, nvrtc};
use crate::data;
use crate::engine::EngineError;
use crate::num::{Bf16, F32};

/// Every kernel of the engine, loaded.
pub(super) struct Kernels {
    stream: Arc<CudaStream>,
    gather_rows: CudaFunction,
    rms_norm: CudaFunction,
    rope: CudaFunction,
    attention: CudaFunction,
    add: CudaFunction,
    silu_mul: CudaFunction,
    argmax: CudaFunction,
}

/// Heads of an attention step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    pub(super) kv: usize,
    /// Query heads per key/value head.
    pub(super) group: usize,
}

type Output<T> = Result<CudaSlice<T>, EngineError>;

impl Kernels {
    pub(super) fn load(device: &Device) -> Result<Self, EngineError> {
        let elementwise = own(device, "elementwise.cu")?;
        Ok(Self {
            stream: Arc::clone(&device.stream),
            gather_rows: function(&own(device, "embedding.cu")?, "gather_rows")?,
            rms_norm: function(&own(device, "rms_norm.cu")?, "rms_norm")?,
            rope: function(&own(device, "rope.cu")?, "rope")?,
            attention: function(&own(device, "attention.cu")?, "attention")?,
            add: function(&elementwise, "add")?,
            silu_mul: function(&elementwise, "silu_mul")?,
            argmax: function(&own(device, "argmax.cu")?, "argmax")?,
        })
    }

    /// Copies rows of `table` `[*, columns]`; every index must be below its rows.
    pub(super) fn gather_rows(
        &self,
        step: &str,
        table: &CudaSlice<Bf16>,
        (indices, largest): (&CudaSlice<u32>, u32),
        columns: usize,
    ) -> Output<Bf16> {
        let rows = indices.len();
        let needed = (largest as usize + 1) * columns;
        check(step, "table", table.len() >= needed && columns > 0, table.len(), needed)?;
        let mut out = self.output(step, rows * columns)?;
        let config = grid(step, rows, 1, (256, 1))?;
        let columns = word(step, columns)?;
        let mut launch = self.stream.launch_builder(&self.gather_rows);
        launch.arg(table).arg(indices).arg(&mut out).arg(&columns);
        // SAFETY: one block per index; the largest index is a whole row of the
        // table, and `out` has `rows · columns` elements.
        unsafe { run(&mut launch, config) }.map_err(device_error(step, "gather_rows"))?;
        Ok(out)
    }

    /// `x` `[runs, width]`, `weight` `[width]`.
    pub(super) fn rms_norm(
        &self,
        step: &str,
        x: &CudaSlice<Bf16>,
        weight: &CudaSlice<Bf16>,
        eps: F32,
    ) -> Output<Bf16> {
        let width = weight.len();
        // spec/ops.md, rms_norm, C2.
        check(step, "weight", width >= 128 && width.is_multiple_of(4), width, 128)?;
        let runs = x.len() / width;
        check(step, "x", x.len() == runs * width, x.len(), runs * width)?;
        let mut out = self.output(step, x.len())?;
        let config = grid(step, runs.div_ceil(WARPS), 1, (32, WARPS))?;
        let (runs, width) = (word(step, runs)?, word(step, width)?);
        let eps = eps.0; // the kernel's float parameter is this word
        let mut launch = self.stream.launch_builder(&self.rms_norm);
        launch.arg(x).arg(weight).arg(&mut out).arg(&eps).arg(&runs).arg(&width);
        // SAFETY: warps past `runs` return; rows are whole; `width` is a multiple
        // of 4, so the 8-byte accesses are aligned and inside their row.
        unsafe { run(&mut launch, config) }.map_err(device_error(step, "rms_norm"))?;
        Ok(out)
    }

    /// `x` `[rows, heads · 128]`, one position a row, 64 frequencies.
    pub(super) fn rope(
        &self,
        step: &str,
        x: &CudaSlice<Bf16>,
        positions: &CudaSlice<u32>,
        frequencies: &CudaSlice<u32>,
    ) -> Output<Bf16> {
        let rows = positions.len();
        let heads = x.len() / (rows * HEAD_DIM).max(1);
        check(step, "x", x.len() == rows * heads * HEAD_DIM, x.len(), rows * heads * HEAD_DIM)?;
        check(
            step,
            "frequencies",
            frequencies.len() == HEAD_DIM / 2,
            frequencies.len(),
            HEAD_DIM / 2,
        )?;
        let mut out = self.output(step, x.len())?;
        let config = grid(step, rows, 1, (64, 1))?;
        let heads = word(step, heads)?;
        let mut launch = self.stream.launch_builder(&self.rope);
        launch.arg(x).arg(positions).arg(frequencies).arg(&mut out).arg(&heads);
        // SAFETY: one block per row, 64 threads for 64 frequencies, and both `x`
        // and `out` have `rows · heads · 128` elements.
        unsafe { run(&mut launch, config) }.map_err(device_error(step, "rope"))?;
        Ok(out)
    }

    /// `q` and `out` `[rows, kv · group · 128]`, all of one sequence; the caches hold
    /// its kept rows of `kv · 128`.
    pub(super) fn attention(
        &self,
        step: &str,
        q: &CudaView<'_, Bf16>,
        (positions, largest): (&CudaView<'_, u32>, usize),
        (keys, values): (&CudaSlice<Bf16>, &CudaSlice<Bf16>),
        heads: Heads,
        out: &mut CudaViewMut<'_, Bf16>,
    ) -> Result<(), EngineError> {
        let rows = positions.len();
        let expected = rows * heads.kv * heads.group * HEAD_DIM;
        check(step, "q", q.len() == expected, q.len(), expected)?;
        check(step, "the output", out.len() == expected, out.len(), expected)?;
        // The tensor-core tile has 16 rows.
        check(step, "query heads per key head", (1..=16).contains(&heads.group), heads.group, 16)?;
        let needed = (largest + 1) * heads.kv * HEAD_DIM;
        check(step, "key cache", keys.len() >= needed, keys.len(), needed)?;
        check(step, "value cache", values.len() >= needed, values.len(), needed)?;
        let config = grid(step, rows, heads.kv, (32, 1))?;
        let (kv, group) = (word(step, heads.kv)?, word(step, heads.group)?);
        let mut launch = self.stream.launch_builder(&self.attention);
        launch.arg(q).arg(positions).arg(keys).arg(values).arg(out).arg(&kv).arg(&group);
        // SAFETY: one warp per row and key head; no key after the row's position
        // is read, and the caches reach the largest position. Views begin at whole
        // rows, so the kernel's wide accesses stay aligned.
        unsafe { run(&mut launch, config) }.map_err(device_error(step, "attention"))
    }

    /// `a + b`.
    pub(super) fn add(&self, step: &str, a: &CudaSlice<Bf16>, b: &CudaSlice<Bf16>) -> Output<Bf16> {
        self.pair(step, (&self.add, "add"), a, b)
    }

    /// `silu(gate) · up`.
    pub(super) fn silu_mul(
        &self,
        step: &str,
        gate: &CudaSlice<Bf16>,
        up: &CudaSlice<Bf16>,
    ) -> Output<Bf16> {
        self.pair(step, (&self.silu_mul, "silu_mul"), gate, up)
    }

    fn pair(
        &self,
        step: &str,
        (kernel, name): (&CudaFunction, &'static str),
        a: &CudaSlice<Bf16>,
        b: &CudaSlice<Bf16>,
    ) -> Output<Bf16> {
        check(step, "second operand", a.len() == b.len(), b.len(), a.len())?;
        let mut out = self.output(step, a.len())?;
        let config = grid(step, a.len().div_ceil(256), 1, (256, 1))?;
        let count = a.len() as u64;
        let mut launch = self.stream.launch_builder(kernel);
        launch.arg(a).arg(b).arg(&mut out).arg(&count);
        // SAFETY: threads past `count` do nothing; all three have `count` elements.
        unsafe { run(&mut launch, config) }.map_err(device_error(step, name))?;
        Ok(out)
    }

    /// `x` `[rows, columns]` to one index a row.
    pub(super) fn argmax(&self, step: &str, x: &CudaSlice<Bf16>, rows: usize) -> Output<u32> {
        let columns = x.len() / rows.max(1);
        let whole = columns > 0 && x.len() == rows * columns;
        check(step, "x", whole, x.len(), rows * columns.max(1))?;
        let mut out = memory::zeros::<u32>(&self.stream, step, rows)?;
        let config = grid(step, rows, 1, (256, 1))?;
        let columns = word(step, columns)?;
        let mut launch = self.stream.launch_builder(&self.argmax);
        launch.arg(x).arg(&mut out).arg(&columns);
        // SAFETY: one block of 256 threads, as the kernel's shared array needs,
        // per whole row.
        unsafe { run(&mut launch, config) }.map_err(device_error(step, "argmax"))?;
        Ok(out)
    }

    fn output(&self, step: &str, len: usize) -> Output<Bf16> {
        memory::zeros(&self.stream, step, len)
    }
}

/// Compiles and loads one of the engine's own sources.
fn own(device: &Device, file: &'static str) -> Result<Arc<CudaModule>, EngineError> {
    let source = data::kernel(file).ok_or_else(|| EngineError::Device {
        step: file.into(),
        call: "embedding",
        reason: "the source is missing".into(),
    })?;
    load_module(device, file, source)
}

/// Compiles and loads a source.
pub(super) fn load_module(
    device: &Device,
    file: &str,
    source: &str,
) -> Result<Arc<CudaModule>, EngineError> {
    let code = nvrtc::compile(file, source).map_err(device_error(file, "NVRTC"))?;
    let module = device.context.load_module(Ptx::from_binary(code));
    module.map_err(device_error(file, "cuModuleLoadData"))
}

/// Finds a kernel of a loaded source.
pub(super) fn function(module: &Arc<CudaModule>, name: &str) -> Result<CudaFunction, EngineError> {
    let step = format!("kernel {name}");
    module.load_function(name).map_err(device_error(&step, "cuModuleGetFunction"))
}

/// Launches.
///
/// # Safety
/// The arguments must be those that the kernel declares, and every index that it
/// computes from them and from `config` must be inside its operands.
unsafe fn run(
    launch: &mut LaunchArgs<'_>,
    config: LaunchConfig,
) -> Result<(), cudarc::driver::DriverError> {
    if config.grid_dim.0 == 0 || config.grid_dim.1 == 0 {
        return Ok(()); // no rows, nothing to do; CUDA refuses an empty grid
    }
    // SAFETY: the caller's promise.
    unsafe { launch.launch(config) }.map(|_| ())
}

fn grid(
    step: &str,
    x: usize,
    y: usize,
    (threads, warps): (u32, usize),
) -> Result<LaunchConfig, EngineError> {
    // CUDA C++ Programming Guide, technical specifications: x to 2^31 - 1, y to 65,535.
    check(step, "grid", x < (1 << 31) && y < (1 << 16), x.max(y), (1 << 16) - 1)?;
    Ok(LaunchConfig {
        grid_dim: (word(step, x)?, word(step, y)?, 1),
        block_dim: (threads, word(step, warps)?, 1),
        shared_mem_bytes: 0,
    })
}

fn word(step: &str, x: usize) -> Result<u32, EngineError> {
    u32::try_from(x).map_err(|_| EngineError::Operand {
        step: step.into(),
        what: format!("{x} does not fit a kernel's 32-bit parameter"),
    })
}

fn check(
    step: &str,
    operand: &str,
    holds: bool,
    found: usize,
    expected: usize,
) -> Result<(), EngineError> {
    if holds {
        return Ok(());
    }
    let what = format!("{operand} of {found} does not fit, expected {expected}");
    Err(EngineError::Operand { step: step.into(), what })
}

const HEAD_DIM: usize = 128;
/// Rows normalised by one block, for occupancy only: rows are independent.
const WARPS: usize = 4;
