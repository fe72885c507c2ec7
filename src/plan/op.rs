//! What a step computes, with its shape rules.

use crate::num::F32;

/// Which half of the key/value cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Half {
    /// Keys, after RoPE.
    Key,
    /// Values.
    Value,
}

/// A place where rows are kept for later passes; row index = position.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CacheSlot {
    /// Layer.
    pub layer: usize,
    /// Keys or values.
    pub half: Half,
}

/// What is computed. Semantics, inputs and rounding points: `spec/ops.md`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Gathers rows of the embedding. Inputs: tokens, weight `[vocab, hidden]`.
    Embedding,
    /// Normalises runs of `width` elements. Inputs: x, weight `[width]`.
    RmsNorm {
        /// Added to the mean square.
        eps: F32,
        /// Elements normalised together: hidden size, or head size for QK-norm.
        width: usize,
    },
    /// `x · weightᵀ`. Inputs: x `[rows, k]`, weight `[columns, k]`.
    Linear {
        /// Length of every dot product.
        k: usize,
    },
    /// Rotary embedding of every head. Input: x `[rows, heads · head_dim]`.
    Rope {
        /// Base of the frequencies, an integer.
        theta: u64,
        /// Elements of a head.
        head_dim: usize,
    },
    /// Causal attention. Inputs: q `[rows, q_heads · head_dim]`, key cache and
    /// value cache `[positions, kv_heads · head_dim]`.
    Attention {
        /// Query heads.
        q_heads: usize,
        /// Key/value heads; divides `q_heads`.
        kv_heads: usize,
        /// Elements of a head.
        head_dim: usize,
    },
    /// `a + b`. Inputs: a, b of equal shape.
    Add,
    /// `silu(gate) · up`. Inputs: gate, up of equal shape.
    SiluMul,
    /// The last row of the pass. Input: x.
    LastToken,
    /// Index of the largest element of each row. Input: x.
    Argmax,
}

impl std::fmt::Display for Op {
    /// The form that plans carry.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Embedding => f.write_str("embedding"),
            Self::RmsNorm { eps, width } => write!(f, "rms_norm(eps={eps:?},width={width})"),
            Self::Linear { k } => write!(f, "linear(k={k})"),
            Self::Rope { theta, head_dim } => write!(f, "rope(theta={theta},head_dim={head_dim})"),
            Self::Attention { q_heads, kv_heads, head_dim } => write!(
                f,
                "attention(q_heads={q_heads},kv_heads={kv_heads},head_dim={head_dim},causal)"
            ),
            Self::Add => f.write_str("add"),
            Self::SiluMul => f.write_str("silu_mul"),
            Self::LastToken => f.write_str("last_token"),
            Self::Argmax => f.write_str("argmax"),
        }
    }
}

impl std::fmt::Display for CacheSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let half = match self.half {
            Half::Key => "key",
            Half::Value => "value",
        };
        write!(f, "cache({},{half})", self.layer)
    }
}
