//! The CUDA engine for the command line.

use super::Exit;
use super::basis::Basis;
use super::error::{EMULATOR, Failure};
use super::produce::{self, Made, Sequence, Work};
use crate::engine::cuda::{CudaEngine, Device, Environment as Found, EnvironmentError};
use crate::engine::generate::Generation;
use crate::engine::outlook::{footprint, foreseen};
use crate::model::Content;
use crate::recipe::catalog::Catalog;
use crate::recipe::cublaslt::Dispatch;
use crate::transcript::capture::{self, LINEAR};
use crate::transcript::record::Recording;
use crate::transcript::statement::{
    Algorithm, DispatchRow, Engine, Environment, GpuEnvironment, KernelSource,
};

/// Why the CUDA engine cannot be used here; `None` if it can.
pub(super) fn why_not(catalog: &Catalog) -> Option<String> {
    let device = match Device::open() {
        Ok(device) => device,
        Err(error) => return Some(error.to_string()),
    };
    let found = device.environment();
    catalog.covers(&found.gpu, &found.nvrtc, &found.cublaslt.to_string()).err()
}

/// The GPU in a few words, if it can be used.
pub(super) fn describe() -> String {
    match Device::open() {
        Ok(device) => {
            let found = device.environment();
            format!(
                "{}, driver {}, CUDA {}, cuBLASLt {}, NVRTC {}",
                found.gpu, found.driver, found.cuda_driver, found.cublaslt, found.nvrtc
            )
        }
        Err(error) => error.to_string(),
    }
}

/// A GPU that has room for the work and a catalogued algorithm for each of its
/// products; without weights.
pub(super) struct Ready(CudaEngine);

/// Opens the GPU and asks of it everything that can be refused before weights are
/// loaded.
pub(super) fn ready(
    content: &Content,
    basis: &Basis,
    prompts: &[Vec<u32>],
    new_tokens: usize,
) -> Result<Ready, Failure> {
    let no_gpu =
        |error: EnvironmentError| Failure::new(Exit::Incomplete, error.to_string()).hint(EMULATOR);
    let lengths: Vec<usize> = prompts.iter().map(Vec::len).collect();
    let launches = foreseen(content.config(), basis.contract(), &lengths, new_tokens)?;
    let (choice, positions) = (basis.stack.choice(), produce::positions(prompts, new_tokens));
    let device = Device::open().map_err(no_gpu)?;
    let workspace = basis.catalog.preference(choice).map_or(0, |asked| asked.workspace_bytes);
    let weights = content.weights().len_bytes();
    footprint(&launches, (prompts.len(), positions), weights, workspace as u64)
        .check(device.free_memory().map_err(no_gpu)?)?;

    let refused = |error| Failure::from(error).hint(EMULATOR);
    let engine = CudaEngine::new(&device, basis.catalog.clone(), choice, positions);
    let mut engine = engine.map_err(refused)?;
    for product in capture::products(&launches) {
        let (m, n, k) = (product.m as usize, product.n as usize, product.k as usize);
        engine.algorithm(m, n, k).map_err(refused)?;
    }
    Ok(Ready(engine))
}

/// Does the work on the GPU.
pub(super) fn produce(Ready(mut engine): Ready, work: &Work<'_>) -> Result<Made, Failure> {
    let basis = work.basis;
    engine.load(work.model.weights())?;
    let made = work.generate(&mut engine)?;
    let dispatch = engine.dispatch();
    let dispatch: Result<Vec<DispatchRow>, Failure> =
        dispatch.iter().map(|row| dispatch_row(basis, row)).collect();
    let dispatch = dispatch?;
    let sequence = |(generation, recording): (Generation, Recording)| Sequence {
        dispatch: capture::used(&dispatch, &generation.plans),
        generation,
        recording,
    };
    let sequences = made.into_iter().map(sequence).collect();
    let environment =
        Environment { engine: Engine::Cuda, gpu: Some(environment(engine.environment())) };
    Ok(Made { sequences, environment })
}

fn environment(found: &Found) -> GpuEnvironment {
    let kernel = |(name, sha256): &(&str, crate::num::Digest)| KernelSource {
        name: (*name).into(),
        sha256: *sha256,
    };
    GpuEnvironment {
        name: found.gpu.clone(),
        driver: found.driver.clone(),
        cuda_driver: found.cuda_driver.clone(),
        cuda_runtime: None,
        cublaslt: found.cublaslt.to_string(),
        nvrtc: found.nvrtc.clone(),
        kernels: found.kernels.iter().map(kernel).collect(),
        nvrtc_options: found.nvrtc_options.iter().map(|&option| option.into()).collect(),
    }
}

fn dispatch_row(basis: &Basis, row: &Dispatch) -> Result<DispatchRow, Failure> {
    let a = &row.algorithm.attributes;
    // The engine takes catalogued algorithms only.
    let size = (row.m as u64, row.n as u64, row.k as u64);
    let recipe = basis.catalog.recipe_of(basis.stack.choice(), a, size).ok_or_else(|| {
        Failure::new(Exit::Internal, format!("algorithm {} is not catalogued", a.id))
    })?;
    Ok(DispatchRow {
        op: LINEAR.into(),
        m: row.m as u64,
        n: row.n as u64,
        k: row.k as u64,
        recipe: recipe.to_string(),
        algorithm: Some(Algorithm {
            id: a.id,
            tile: a.tile,
            stages: a.stages,
            split_k: a.split_k,
            reduction_scheme: a.reduction_scheme,
            swizzle: a.swizzle,
            custom_option: a.custom_option,
            inner_shape: a.inner_shape,
            cluster_shape: a.cluster_shape,
            workspace_bytes: row.algorithm.workspace_bytes,
        }),
    })
}
