//! Every known instruction order, as data: the *how* of a step.

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

impl std::fmt::Display for Recipe {
    /// The form that plans, catalogues and transcripts carry.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Copy => f.write_str("copy"),
            Self::RowReduction { lanes } => write!(f, "row_reduction(lanes={lanes},vector=4)"),
            Self::SingleWalk => f.write_str("single_walk"),
            Self::RopeBf16 => f.write_str("rope_bf16"),
            Self::Flash2 { kv_tile } => write!(f, "flash2(kv_tile={kv_tile})"),
            Self::Elementwise => f.write_str("elementwise"),
            Self::LowestIndex => f.write_str("lowest_index"),
        }
    }
}
