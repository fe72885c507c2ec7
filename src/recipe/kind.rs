//! Every known instruction order, as data: the *how* of a step.

use super::split_k::K_TILE;

/// How a step's result is computed, down to the order of its roundings.
///
/// A recipe is part of a plan, and so of the plan's digest. Engines execute the
/// recipe that the step names; they never choose one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Recipe {
    /// Rows are copied; nothing is rounded.
    Copy,
    /// Row sum in PyTorch's order with this many lanes, loading four neighbours
    /// at a time ([`super::reduce`]), then MUFU.RSQ ([`super::rms_norm`]).
    RowReduction {
        /// Lanes that share a row.
        lanes: u16,
    },
    /// One accumulator from +0, K ascending in blocks, rounded to bf16 at the
    /// end ([`super::gemm`]).
    SingleWalk,
    /// K in slices of whole tiles of 64: a walk each from +0, added left to right in
    /// binary32, rounded to bf16 at the end ([`super::split_k`]).
    SplitKWorkspaceF32 {
        /// Slices of K, at least 2.
        slices: u8,
    },
    /// CUDA's `cosf` and `sinf`, bf16 tables, bf16 products and sum
    /// ([`super::rope`]).
    RopeBf16,
    /// FlashAttention-2 forward, KV tiles in descending order from the tile of
    /// the row's own position ([`super::attention`]).
    Flash2 {
        /// Keys in a tile.
        kv_tile: u16,
    },
    /// One element at a time, each rounding point to bf16 or binary32 as the
    /// operation says ([`super::elementwise`]).
    Elementwise,
    /// The lowest index among equal maxima; a NaN wins ([`super::argmax`]).
    LowestIndex,
}

impl Recipe {
    /// Reads the recipe of a matrix product from the text that `Display` writes, and
    /// from no other spelling; `None` also for fewer than two slices.
    pub fn product_from_text(text: &str) -> Option<Self> {
        let slices = text.strip_prefix("split_k_workspace_f32(slices=");
        let slices = slices.and_then(|rest| rest.split(',').next()?.parse().ok());
        let recipe = match slices {
            Some(slices) => Self::SplitKWorkspaceF32 { slices },
            None => Self::SingleWalk,
        };
        // One spelling each: no signs, no leading zeros, nothing before or after.
        (slices.is_none_or(|slices| slices >= 2) && recipe.to_string() == text).then_some(recipe)
    }
}

impl std::fmt::Display for Recipe {
    /// The form that plans, catalogues and transcripts carry.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Copy => f.write_str("copy"),
            Self::RowReduction { lanes } => write!(f, "row_reduction(lanes={lanes},vector=4)"),
            Self::SingleWalk => f.write_str("single_walk"),
            Self::SplitKWorkspaceF32 { slices } => {
                write!(f, "split_k_workspace_f32(slices={slices},k_tile={K_TILE})")
            }
            Self::RopeBf16 => f.write_str("rope_bf16"),
            Self::Flash2 { kv_tile } => write!(f, "flash2(kv_tile={kv_tile})"),
            Self::Elementwise => f.write_str("elementwise"),
            Self::LowestIndex => f.write_str("lowest_index"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_have_one_spelling() {
        let split = |slices| Some(Recipe::SplitKWorkspaceF32 { slices });
        // (text, recipe)
        let cases = [
            ("single_walk", Some(Recipe::SingleWalk)),
            ("split_k_workspace_f32(slices=3,k_tile=64)", split(3)),
            ("split_k_workspace_f32(slices=255,k_tile=64)", split(255)),
            ("split_k_workspace_f32(slices=256,k_tile=64)", None),
            ("split_k_workspace_f32(slices=1,k_tile=64)", None),
            ("split_k_workspace_f32(slices=03,k_tile=64)", None),
            ("split_k_workspace_f32(slices=+3,k_tile=64)", None),
            ("split_k_workspace_f32(slices=3,k_tile=32)", None),
            ("split_k_workspace_f32(slices=3, k_tile=64)", None),
            ("split_k_workspace_f32(slices=3,k_tile=64) ", None),
            ("split_k_workspace_f32(slices=3)", None),
            ("split_k_workspace_f32", None),
            (" single_walk", None),
            ("Single_Walk", None),
            ("elementwise", None),
            ("", None),
        ];
        for (text, recipe) in cases {
            assert_eq!(Recipe::product_from_text(text), recipe, "{text:?}");
            assert!(recipe.is_none_or(|recipe| recipe.to_string() == text), "{text:?}");
        }
    }
}
