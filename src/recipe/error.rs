//! What a recipe refuses.

/// An input that a recipe does not cover. No recipe guesses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// An operand has another number of elements than the operator needs.
    #[error("{op}: {operand} has {found} elements, expected {expected}")]
    Shape {
        /// The operator, as named in `spec/ops.md`.
        op: &'static str,
        /// The operand.
        operand: &'static str,
        /// Elements needed.
        expected: usize,
        /// Elements given.
        found: usize,
    },
    /// A row that PyTorch reduces on its unvectorised path.
    #[error(
        "row reduction over {n} elements is not covered: it needs a multiple of 4 and at least 128"
    )]
    ReductionLength {
        /// Elements of a row.
        n: usize,
    },
    /// A number of lanes that no launch has.
    #[error("row reduction of {lanes} lanes is not covered, only 32, 64, 128, 256 and 512")]
    ReductionLanes {
        /// The lanes given.
        lanes: usize,
    },
    /// A launch that shares one row among the block's rows, or among blocks.
    #[error(
        "row reduction of {rows} rows of {n} is not covered: PyTorch shares a row among {shared_among}"
    )]
    ReductionLaunch {
        /// Rows of the launch.
        rows: usize,
        /// Elements of a row.
        n: usize,
        /// What the row is shared among.
        shared_among: &'static str,
    },
    /// A split of K that is none.
    #[error("split-K in {slices} slices is not covered: it needs at least 2")]
    SplitCount {
        /// The slices given.
        slices: u8,
    },
    /// A split of a K that ends inside a tile: a defect of public record of the
    /// library (facebookexperimental/triton #2767).
    #[error(
        "split-K of {k} columns is not modelled: k is no multiple of 64, where the library can lose the last terms"
    )]
    SplitTail {
        /// Length of the dot products.
        k: usize,
    },
    /// More slices than whole tiles fill.
    #[error("split-K of {k} columns in {slices} slices is not covered: the last would be empty")]
    SplitEmpty {
        /// Length of the dot products.
        k: usize,
        /// The slices given.
        slices: u8,
    },
    /// A head size other than the one whose order was measured.
    #[error("{op}: head size {head_dim} is not covered, only 128")]
    HeadDim {
        /// The operator, as named in `spec/ops.md`.
        op: &'static str,
        /// The head size given.
        head_dim: usize,
    },
    /// A RoPE base without measured frequencies.
    #[error("rope: no frequencies for theta {theta}; known: {known}")]
    RopeTheta {
        /// The base given.
        theta: u64,
        /// The bases of `profiles/rope_inv_freq.json`.
        known: String,
    },
    /// The shipped frequencies do not have their documented form.
    #[error("rope: profiles/rope_inv_freq.json, theta {theta}: {problem}")]
    RopeData {
        /// The base looked up.
        theta: u64,
        /// What is wrong.
        problem: String,
    },
    /// A position outside a table or past the exact integers of binary32.
    #[error("{op}: position {position} is outside 0..{limit}")]
    Position {
        /// The operator, as named in `spec/ops.md`.
        op: &'static str,
        /// The position given.
        position: usize,
        /// The first position that is refused.
        limit: usize,
    },
    /// A head that the tensor does not have.
    #[error("{op}: head {head} of {heads}")]
    Head {
        /// The operator, as named in `spec/ops.md`.
        op: &'static str,
        /// The head given.
        head: usize,
        /// Heads of the tensor.
        heads: usize,
    },
    /// A token id outside the vocabulary.
    #[error("embedding: token {token} is outside a vocabulary of {vocabulary}")]
    Token {
        /// The token id given.
        token: u32,
        /// Rows of the table.
        vocabulary: usize,
    },
    /// A row without elements, which has no largest element.
    #[error("argmax: the row is empty")]
    EmptyRow,
}

/// Refuses `found` elements where `expected` are needed.
pub(super) fn expect_len(
    op: &'static str,
    operand: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), RecipeError> {
    if expected == found {
        Ok(())
    } else {
        Err(RecipeError::Shape { op, operand, expected, found })
    }
}
