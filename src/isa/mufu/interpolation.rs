//! The quadratic interpolator that all four functions share.

use super::table::Row;

/// The fixed parameters of one function and its rows.
pub(super) struct Interpolator<const SEGMENTS: usize> {
    /// Table rows, one a segment.
    pub(super) rows: [Row; SEGMENTS],
    /// Low bits of the fraction that stay within a segment (bits).
    pub(super) x_bits: u32,
    /// Left shift of the argument before the 17-bit squarer (bits).
    pub(super) square_shift: u32,
    /// Left shift of `c0` (bits).
    pub(super) c0_shift: u32,
    /// Left shift of the squared term (bits).
    pub(super) c2_shift: u32,
    /// Right shift of the sum, toward minus infinity (bits).
    pub(super) result_shift: u32,
    /// Rounding constant added to the sum.
    pub(super) bias: i64,
}

impl<const SEGMENTS: usize> Interpolator<SEGMENTS> {
    /// Evaluates the quadratic at `fraction` (R3): one sum, cut once.
    ///
    /// The sum stays below `2^43` in magnitude: the constant term has at most 39 bits
    /// (40 for RSQ), `c1·x` at most 33, the squared term at most 28.
    // Always, so that the parameters of each function become constants of its code.
    #[inline(always)]
    pub(super) fn evaluate(&self, fraction: u32) -> i64 {
        let row = &self.rows[(fraction >> self.x_bits) as usize];
        let x = fraction & ((1 << self.x_bits) - 1);
        let square = i64::from(square(x << self.square_shift)) << self.c2_shift;
        let sum = (row.c0 << self.c0_shift) + row.c1 * i64::from(x) + row.c2 * square + self.bias;
        sum >> self.result_shift
    }
}

/// Squares 17 bits in units of `2^19` with a truncated multiplier (R2): partial
/// products in columns below `2^19` of the full square do not exist.
///
/// With `v = h·2^9 + l`, the columns that hold two bits of `h` add to `h²`, half of which is
/// its share; a column of one bit of `h` and one of `l` occurs twice, so half of
/// that is one sum of shifted copies of `l`. Two bits of `l` never reach `2^18`.
#[inline]
fn square(v: u32) -> u32 {
    let (h, l) = (v >> 9, v & 0x1ff);
    let mut sum = (h * h) >> 1;
    for k in 1..8 {
        sum += (l >> (9 - k)) * (h >> k & 1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::square;

    /// The definition: every pair of bits of the folded square, column by column.
    fn square_by_columns(v: u32) -> u32 {
        let bit = |i: u32| v >> i & 1;
        let mut sum = 0;
        for i in 0..17 {
            for j in 0..i {
                if i + j >= 18 {
                    sum += (bit(i) * bit(j)) << (i + j - 18);
                }
            }
            if i >= 10 {
                sum += bit(i) << (2 * i - 19);
            }
        }
        sum
    }

    #[test]
    fn square_equals_its_columns_for_every_argument() {
        for v in 0..1 << 17 {
            assert_eq!(square(v), square_by_columns(v), "{v:#x}");
        }
    }

    #[test]
    fn square_misses_only_the_absent_columns() {
        // Dropping a column can only lower the result, and the absent columns
        // of a 17-bit folded square hold less than 9 units of 2^19.
        for v in (0..1_u64 << 17).step_by(7) {
            let exact = (v * v) >> 19;
            let ours = u64::from(square(u32::try_from(v).unwrap()));
            assert!(ours <= exact && exact - ours < 9, "{v:#x}");
        }
    }
}
