//! A panel of B, one block of K, decoded once for all rows.

use super::NO_PRODUCT;
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
            let column = &column[start..start + len];
            if let Ok(column) = <&[Bf16; N]>::try_from(column) {
                for index in 0..N {
                    codes[index][lane] = column[index].0;
                }
            } else {
                for (codes, code) in codes.iter_mut().zip(column) {
                    codes[lane] = code.0;
                }
            }
        }
        // Biased exponents, a subnormal's 1 and a zero's 0, in `i16`, which every
        // instruction set compares quickly.
        // One array a loop and no checked arithmetic: that is what vectorises.
        let mut fields = [[0i16; W]; N];
        for (fields, codes) in fields.iter_mut().zip(&codes) {
            for (field, &code) in fields.iter_mut().zip(codes) {
                let normal = (((code >> 7) & 0xff) as i16).max(1);
                *field = if code & 0x7fff == 0 { 0 } else { normal };
            }
        }
        for (values, codes) in self.values.iter_mut().zip(&codes) {
            for (value, &code) in values.iter_mut().zip(codes) {
                *value = f32::from_bits(u32::from(code) << 16);
            }
        }
        let (mut largest, mut least) = ([0i16; W], [i16::MAX; W]);
        for fields in &fields {
            for (largest, &field) in largest.iter_mut().zip(fields) {
                *largest = (*largest).max(field);
            }
            for (least, &field) in least.iter_mut().zip(fields) {
                *least = (*least).min(if field == 0 { i16::MAX } else { field });
            }
        }
        let largest = largest.iter().copied().fold(0, i16::max);
        let least = least.iter().copied().fold(i16::MAX, i16::min);
        self.finite = largest < 255;
        self.largest = if largest == 0 { i32::MIN } else { i32::from(largest) - 127 };
        self.least = i32::from(least) - 127;
        for (deficits, fields) in self.deficits.iter_mut().zip(&fields) {
            for (deficit, &field) in deficits.iter_mut().zip(fields) {
                // At most 254 for a nonzero value.
                let below = largest.wrapping_sub(field) as u8;
                *deficit = if field == 0 { NO_PRODUCT } else { below };
            }
        }
    }
}
