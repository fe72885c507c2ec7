//! What a cuBLASLt algorithm computes.
//!
//! A descriptor is what the library says of an algorithm; a [`Catalog`] lists
//! which descriptors were measured, and this file says what they mean.

use serde::{Deserialize, Serialize};

use super::Recipe;
use super::catalog::{Catalog, CataloguedRecipe};

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

/// Returns the recipe that a descriptor's algorithm follows for a product
/// `[m, k] · [n, k]ᵀ`, or `None` if the catalogue does not list it as measured up
/// to that size: then nobody knows.
///
/// Tile, stages, swizzle, cluster and the other shape attributes place outputs
/// on the chip; no output's own walk along K depends on them.
pub fn recipe_of(
    catalog: &Catalog,
    descriptor: &AlgorithmDescriptor,
    (m, n, k): (u64, u64, u64),
) -> Option<Recipe> {
    let listed = catalog.algorithms().iter().find(|listed| {
        listed.id == descriptor.id
            && descriptor.split_k <= listed.max_split_k
            && descriptor.reduction_scheme == listed.reduction_scheme
            && m <= listed.max_m
            && n <= listed.max_n
            && k <= listed.max_k
    })?;
    match listed.recipe {
        CataloguedRecipe::SingleWalk => (descriptor.split_k <= 1).then_some(Recipe::SingleWalk),
    }
}

/// Says why a descriptor has no recipe for a product of this size.
pub fn why_unknown(
    catalog: &Catalog,
    descriptor: &AlgorithmDescriptor,
    (m, n, k): (u64, u64, u64),
) -> String {
    let (id, split) = (descriptor.id, descriptor.split_k);
    let listed = catalog.algorithms().iter().find(|listed| listed.id == id);
    let limits = listed.map_or(Vec::new(), |listed| {
        vec![("m", m, listed.max_m), ("n", n, listed.max_n), ("k", k, listed.max_k)]
    });
    match limits.into_iter().find(|(_, asked, max)| asked > max) {
        Some((name, asked, max)) => format!(
            "algorithm {id} was measured up to {name}={max}, the product has {name}={asked}"
        ),
        None => format!(
            "algorithm {id} (split {split}, reduction scheme {}) was not measured",
            descriptor.reduction_scheme
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(id: u32, split_k: u32, reduction_scheme: u32) -> AlgorithmDescriptor {
        AlgorithmDescriptor {
            id,
            tile: 393,
            stages: 35,
            split_k,
            reduction_scheme,
            swizzle: 0,
            custom_option: 0,
            inner_shape: 0,
            cluster_shape: 2,
            workspace_bytes: 0,
        }
    }

    #[test]
    fn only_what_the_catalogue_lists_has_a_recipe() {
        let catalog = Catalog::by_id("h200-cublaslt-13.1").unwrap();
        // (id, split, reduction scheme, recipe, reason)
        let cases = [
            (66, 1, 0, Some(Recipe::SingleWalk), "nvjet without split"),
            (66, 0, 0, Some(Recipe::SingleWalk), "0 slices also means no split"),
            (66, 2, 2, None, "split-K is not in this catalogue"),
            (66, 2, 0, None, "a split without a reduction is no algorithm we know"),
            (66, 1, 2, None, "a reduction without a split, likewise"),
            (41, 1, 0, None, "id 41 was never measured"),
        ];
        for (id, split_k, scheme, recipe, reason) in cases {
            let found = recipe_of(&catalog, &descriptor(id, split_k, scheme), (17, 256, 256));
            assert_eq!(found, recipe, "{reason}");
        }
    }

    #[test]
    fn nothing_is_known_beyond_the_measured_sizes() {
        let catalog = Catalog::by_id("h200-cublaslt-13.1").unwrap();
        let known = |m, n, k| recipe_of(&catalog, &descriptor(66, 1, 0), (m, n, k)).is_some();
        assert!(known(4096, 151_936, 9728));
        let sentence = why_unknown(&catalog, &descriptor(66, 1, 0), (1, 4096, 12_288));
        assert_eq!(sentence, "algorithm 66 was measured up to k=9728, the product has k=12288");
        assert!(!known(4097, 128, 128) && !known(1, 151_937, 128) && !known(1, 128, 9729));
    }
}
