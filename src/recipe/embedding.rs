//! Row gather.

use super::RecipeError;
use super::error::expect_len;
use crate::num::Bf16;

/// Copies the table's row of `token`.
///
/// # Shape
/// `table`: `[vocabulary, hidden]` BF16, row-major; `out`: `[hidden]` BF16.
///
/// # Rounding
/// None; bits are copied, NaN payloads included.
///
/// # Errors
/// [`RecipeError::Token`] if the table has no such row (C1);
/// [`RecipeError::Shape`] if the table does not consist of whole rows (C2).
///
/// # Source
/// `spec/ops.md`, `embedding`.
pub fn embedding_row(table: &[Bf16], token: u32, out: &mut [Bf16]) -> Result<(), RecipeError> {
    let hidden = out.len();
    let vocabulary = table.len().checked_div(hidden).unwrap_or(0);
    expect_len("embedding", "table", vocabulary * hidden, table.len())?;
    let row = usize::try_from(token)
        .ok()
        .and_then(|token| table.chunks_exact(hidden.max(1)).nth(token))
        .ok_or(RecipeError::Token { token, vocabulary })?;
    out.copy_from_slice(row);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_the_bits_of_one_row() {
        let table = [1, 2, 3, 4, 0xffc1, 6].map(Bf16);
        let mut out = [Bf16::ZERO; 2];
        embedding_row(&table, 2, &mut out).unwrap();
        assert_eq!(out, [Bf16(0xffc1), Bf16(6)]);
    }

    #[test]
    fn refuses_a_token_outside_the_vocabulary_and_a_broken_table() {
        let mut out = [Bf16::ZERO; 2];
        let refused = embedding_row(&[Bf16::ZERO; 6], 3, &mut out);
        assert_eq!(refused, Err(RecipeError::Token { token: 3, vocabulary: 3 }));
        assert!(embedding_row(&[Bf16::ZERO; 5], 0, &mut out).is_err());
        assert!(embedding_row(&[Bf16::ZERO; 5], 0, &mut []).is_err());
    }
}
