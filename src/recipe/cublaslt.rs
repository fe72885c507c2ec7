//! What cuBLASLt says of an algorithm, and which one computed a product.
//!
//! Which descriptors were measured, and what they mean, is [`super::catalog`].

use serde::{Deserialize, Serialize};

/// A cuBLASLt algorithm as its configuration attributes describe it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlgorithmDescriptor {
    /// `CUBLASLT_ALGO_CONFIG_ID`: the kernel family.
    pub id: u32,
    /// `CUBLASLT_ALGO_CONFIG_TILE_ID`.
    pub tile: u32,
    /// `CUBLASLT_ALGO_CONFIG_STAGES_ID`.
    pub stages: u32,
    /// `CUBLASLT_ALGO_CONFIG_SPLITK_NUM`: slices of K; 0 and 1 both mean none.
    pub split_k: u32,
    /// `CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME`: 0 where nothing is reduced.
    pub reduction_scheme: u32,
    /// `CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING`.
    pub swizzle: u32,
    /// `CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION`.
    pub custom_option: u32,
    /// `CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID`.
    pub inner_shape: u32,
    /// `CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID`.
    pub cluster_shape: u32,
    /// Workspace that the algorithm needs (bytes).
    pub workspace_bytes: u64,
}

/// One distinct matrix product and the algorithm that computed it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dispatch {
    /// Rows of the activations.
    pub m: usize,
    /// Rows of the weight.
    pub n: usize,
    /// Length of the dot products.
    pub k: usize,
    /// The algorithm.
    pub algorithm: AlgorithmDescriptor,
}
