//! The environment of a GPU that never ran.

use attest::data;
use attest::transcript::statement::{Algorithm, Engine, GpuEnvironment, KernelSource, Statement};

/// Gives a statement of the emulator the environment of a GPU that never ran.
pub fn pretend_gpu(statement: &mut Statement) {
    statement.environment.engine = Engine::Cuda;
    statement.environment.gpu = Some(GpuEnvironment {
        name: "NVIDIA H200".into(),
        driver: "580.159.04".into(),
        cuda_driver: "13.0".into(),
        cuda_runtime: None,
        cublaslt: "130100".into(),
        nvrtc: "13.0".into(),
        kernels: data::kernel_digests()
            .map(|(name, sha256)| KernelSource { name: name.into(), sha256 })
            .collect(),
        nvrtc_options: data::NVRTC_OPTIONS.iter().map(|&option| option.into()).collect(),
    });
    for row in &mut statement.dispatch {
        row.algorithm = Some(algorithm());
    }
}

/// An algorithm of the family that `native` has measured.
pub fn algorithm() -> Algorithm {
    Algorithm {
        id: 66,
        tile: 393,
        stages: 35,
        split_k: 1,
        reduction_scheme: 0,
        swizzle: 0,
        custom_option: 0,
        inner_shape: 0,
        cluster_shape: 2,
        workspace_bytes: 0,
    }
}
