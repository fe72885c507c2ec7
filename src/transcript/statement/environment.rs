//! Where a transcript was made. Claims of the signer: a match proves that the
//! output equals the computation, not that this GPU did it.

use crate::num::Digest;
use crate::transcript::wire::{record, words};

words! {
    /// What executed the plan.
    Engine {
        /// A GPU through CUDA.
        Cuda => "cuda",
        /// The emulator of this crate.
        Emulator => "emulator",
    }
}

record! {
    /// One kernel source file as it was given to the compiler.
    KernelSource {
        /// File name.
        1 => name: String,
        /// SHA-256 of the text.
        2 => sha256: Digest,
    }
}

record! {
    /// The GPU and the software that drove it.
    GpuEnvironment {
        /// Name that the driver reports.
        1 => name: String,
        /// Driver version, for instance `580.95.05`.
        2 => driver: String,
        /// CUDA version that the driver supports, for instance `13.0`.
        3 => cuda_driver: String,
        /// CUDA runtime version, where a runtime library was used.
        4 => cuda_runtime: Option<String>,
        /// cuBLASLt version.
        5 => cublaslt: String,
        /// NVRTC version.
        6 => nvrtc: String,
        /// Kernel sources, in ascending order of their names.
        7 => kernels: Vec<KernelSource>,
        /// Options given to NVRTC, in order.
        8 => nvrtc_options: Vec<String>,
    }
}

record! {
    /// What executed the plan, and with which software.
    Environment {
        /// The engine.
        1 => engine: Engine,
        /// The GPU; present exactly if the engine is `cuda`.
        2 => gpu: Option<GpuEnvironment>,
    }
}
