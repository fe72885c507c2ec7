//! How much work and memory a step is: for schedules, progress and estimates.

use super::{Op, Pass, Step};

impl Step {
    /// Bytes of the output.
    pub fn len_bytes(&self) -> usize {
        self.rows * self.columns * self.dtype.size_bytes()
    }

    /// Multiply-adds of tensor-core products in this step of `pass`.
    ///
    /// Attention counts two products for every key that a row may see, which is
    /// fewer than its tiles have. Everything that is no product counts nothing.
    pub fn multiply_adds(&self, pass: &Pass) -> u64 {
        match self.op {
            Op::Linear { k } => (self.rows * self.columns) as u64 * k as u64,
            Op::Attention { q_heads, head_dim, .. } => {
                let (start, tokens) = (pass.start as u64, pass.tokens as u64);
                // Row i of the pass sees start + i + 1 keys.
                let keys = tokens * start + tokens * (tokens + 1) / 2;
                2 * (q_heads * head_dim) as u64 * keys
            }
            Op::Embedding
            | Op::RmsNorm { .. }
            | Op::Rope { .. }
            | Op::Add
            | Op::SiluMul
            | Op::LastToken
            | Op::Argmax => 0,
        }
    }
}
