//! The kernels and catalogues that the crate carries, by name, and the compiler
//! options that belong to the kernels. A verifier needs no other copy of them.

use crate::num::{Digest, sha256};

/// Kernel sources of the CUDA engine by file name, in ascending order.
/// `common.cuh` is prepended to each of the others.
pub const KERNELS: &[(&str, &str)] = &[
    ("argmax.cu", include_str!("../kernels/argmax.cu")),
    ("attention.cu", include_str!("../kernels/attention.cu")),
    (COMMON, include_str!("../kernels/common.cuh")),
    ("elementwise.cu", include_str!("../kernels/elementwise.cu")),
    ("embedding.cu", include_str!("../kernels/embedding.cu")),
    ("rms_norm.cu", include_str!("../kernels/rms_norm.cu")),
    ("rope.cu", include_str!("../kernels/rope.cu")),
];

/// The file that is prepended to every kernel.
pub const COMMON: &str = "common.cuh";

/// Options given to NVRTC, in order. Contraction is off so that every fused
/// operation is one that the source names; the others are spelled out although
/// they are defaults.
pub const NVRTC_OPTIONS: &[&str] = &[
    "--gpu-architecture=sm_90",
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
];

/// Sets of kernel sources that were measured ([`crate::recipe::kernel_sets`]).
pub const KERNEL_SETS: &str = include_str!("../kernels/measured.json");

/// Dispatch catalogues by id.
pub const CATALOGS: &[(&str, &str)] = &[
    ("h200-cublaslt-13.1", include_str!("../catalogs/h200-cublaslt-13.1.json")),
    (
        "h200-cublaslt-13.1-qwen3-0.6b",
        include_str!("../catalogs/h200-cublaslt-13.1-qwen3-0.6b.json"),
    ),
    (
        "h200-cublaslt-13.1-qwen3-1.7b",
        include_str!("../catalogs/h200-cublaslt-13.1-qwen3-1.7b.json"),
    ),
    ("h200-cublaslt-13.1-qwen3-4b", include_str!("../catalogs/h200-cublaslt-13.1-qwen3-4b.json")),
    ("h200-cublaslt-13.1-qwen3-8b", include_str!("../catalogs/h200-cublaslt-13.1-qwen3-8b.json")),
];

/// Looks a kernel source up by its file name.
pub fn kernel(name: &str) -> Option<&'static str> {
    KERNELS.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}

/// SHA-256 of every kernel source, by file name, in ascending order.
pub fn kernel_digests() -> impl ExactSizeIterator<Item = (&'static str, Digest)> {
    KERNELS.iter().map(|(name, text)| (*name, sha256(&[text.as_bytes()])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_names_ascend() {
        assert!(KERNELS.is_sorted_by(|a, b| a.0 < b.0));
    }
}
