//! What cuBLASLt says of an algorithm, and which one computed a product.
//!
//! Which algorithms were measured, and what they compute, is [`super::catalog`].

use serde::{Deserialize, Serialize};

/// What tells cuBLASLt's algorithms apart: their configuration attributes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attributes {
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
}

impl std::fmt::Display for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, tile, stages, split_k, reduction_scheme, .. } = self;
        write!(f, "algorithm {id} (tile {tile}, stages {stages}, split {split_k}, ")?;
        write!(f, "reduction scheme {reduction_scheme}, swizzle {}, ", self.swizzle)?;
        write!(f, "option {}, inner shape {}, ", self.custom_option, self.inner_shape)?;
        write!(f, "cluster {})", self.cluster_shape)
    }
}

/// An algorithm as the library offers it for one product.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct AlgorithmDescriptor {
    /// Which algorithm.
    pub attributes: Attributes,
    /// Workspace that it needs for this product (bytes); grows with the rows and says
    /// nothing about the arithmetic.
    pub workspace_bytes: u64,
}

/// One distinct matrix product and the algorithm that computed it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
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
