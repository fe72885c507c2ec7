//! A panel of B, one block of K, decoded once for all rows.

use super::{NO_PRODUCT, exponent, is_special};
use crate::num::Bf16;

/// One block of `N` k's of `W` columns.
#[repr(align(64))]
pub(super) struct Columns<const N: usize, const W: usize> {
    /// Values, k-major.
    pub(super) values: [[f32; W]; N],
    /// How far each exponent lies below `largest`; [`NO_PRODUCT`] for a zero.
    pub(super) deficits: [[u8; W]; N],
    /// Largest exponent of a nonzero value; `i32::MIN` if there is none.
    pub(super) largest: i32,
    /// Least exponent of a nonzero value.
    pub(super) least: i32,
    /// No infinity, no NaN.
    pub(super) finite: bool,
}

impl<const N: usize, const W: usize> Columns<N, W> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self {
            values: [[0.0; W]; N],
            deficits: [[NO_PRODUCT; W]; N],
            largest: i32::MIN,
            least: i32::MAX,
            finite: true,
        }
    }

    /// Decodes `len` k's from `start` of up to `W` columns of length `k`. Missing
    /// k's and columns are zeros.
    #[inline(always)]
    pub(super) fn decode(&mut self, b: &[Bf16], k: usize, start: usize, len: usize) {
        let mut codes = [[0u16; W]; N];
        for (lane, column) in b.chunks_exact(k).enumerate().take(W) {
            for (index, &Bf16(code)) in column[start..start + len].iter().enumerate().take(N) {
                codes[index][lane] = code;
            }
        }
        self.finite = true;
        let mut largest = [i16::MIN; W];
        let mut least = [i16::MAX; W];
        let mut special = [false; W];
        for (codes, values) in codes.iter().zip(&mut self.values) {
            for lane in 0..W {
                let code = codes[lane];
                values[lane] = f32::from_bits(u32::from(code) << 16);
                special[lane] |= is_special(code);
                if let Some(exponent) = exponent(code) {
                    largest[lane] = largest[lane].max(exponent as i16);
                    least[lane] = least[lane].min(exponent as i16);
                }
            }
        }
        self.finite = !special.contains(&true);
        let most = largest.iter().copied().fold(i16::MIN, i16::max);
        self.largest = if most == i16::MIN { i32::MIN } else { i32::from(most) };
        self.least = i32::from(least.iter().copied().fold(i16::MAX, i16::min));
        for (codes, deficits) in codes.iter().zip(&mut self.deficits) {
            for lane in 0..W {
                deficits[lane] = match exponent(codes[lane]) {
                    Some(exponent) => (i32::from(most) - exponent).min(254) as u8,
                    None => NO_PRODUCT,
                };
            }
        }
    }
}
