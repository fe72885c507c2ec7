//! The functions over slices: the bits of the scalar text, many values at a time.
//!
//! The sum of [`Interpolator`] has 43 bits; here it is cut into `i32` lanes. With
//! `x = 16·xh + xl` and `c0 = 4·ch + cl`, the sum shifted right by `result_shift` is
//!
//! ```text
//! ch + ((c1·xh + ((cl·2^c0_shift + c1·xl + c2·square + bias) >> 4)) >> (result_shift − 4))
//! ```
//!
//! since `result_shift` is `c0_shift + 2`, so that `ch` is a whole number of results, and since
//! cutting twice toward minus infinity is cutting once. Bounds: `|c1| < 2^16`, so `|c1·xh| < 2^29`
//! and `|c1·xl| < 2^20`; the squared term is below `2^28` and the other two together below
//! `2^17`. Arithmetic is written as wrapping because checks keep a loop out of vector registers.

use super::interpolation::Interpolator;
use super::{ex2::ex2_lanes, rcp::rcp_lanes, rsq::rsq_lanes};
use crate::isa::Vectorise;
use crate::isa::mma::Simd;
use crate::num::F32;

/// Replaces every value by [`ex2`](super::ex2()) of it.
pub fn ex2_slice(simd: Simd, values: &mut [F32]) {
    simd.vectorise(InPlace { values, function: Ex2 });
}

/// Replaces every value by [`rcp`](super::rcp()) of it.
pub fn rcp_slice(simd: Simd, values: &mut [F32]) {
    simd.vectorise(InPlace { values, function: Rcp });
}

/// Replaces every value by [`rsq`](super::rsq()) of it.
pub fn rsq_slice(simd: Simd, values: &mut [F32]) {
    simd.vectorise(InPlace { values, function: Rsq });
}

struct InPlace<'a, F> {
    values: &'a mut [F32],
    function: F,
}

/// A function of this folder. A type, because a call through `Fn` may stay a call.
trait Function {
    fn apply(&self, values: &mut [F32; WIDTH]);
}

struct Ex2;
struct Rcp;
struct Rsq;

impl Function for Ex2 {
    #[inline(always)]
    fn apply(&self, values: &mut [F32; WIDTH]) {
        ex2_lanes(values);
    }
}

impl Function for Rcp {
    #[inline(always)]
    fn apply(&self, values: &mut [F32; WIDTH]) {
        rcp_lanes(values);
    }
}

impl Function for Rsq {
    #[inline(always)]
    fn apply(&self, values: &mut [F32; WIDTH]) {
        rsq_lanes(values);
    }
}

impl<F: Function> Vectorise for InPlace<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (whole, rest) = self.values.as_chunks_mut::<WIDTH>();
        for values in whole {
            self.function.apply(values);
        }
        let mut last = [F32::ONE; WIDTH];
        last[..rest.len()].copy_from_slice(rest);
        self.function.apply(&mut last);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// An [`Interpolator`] in `i32`.
pub(super) struct Quadratic<const SEGMENTS: usize> {
    rows: [Row; SEGMENTS],
    x_bits: u32,
    square_shift: u32,
    c0_shift: u32,
    c2_shift: u32,
    bias: i32,
}

/// A row in eight bytes, so that a lane costs one load: `c0`, and `c1·2^10 + c2`.
type Row = [i32; 2];

impl<const SEGMENTS: usize> Quadratic<SEGMENTS> {
    /// Converts; a table outside the bounds of the module's text stops the build.
    pub(super) const fn new(table: &Interpolator<SEGMENTS>) -> Self {
        assert!(table.result_shift == table.c0_shift + 2 && table.c0_shift <= 14);
        assert!(SEGMENTS.is_power_of_two() && table.x_bits + table.square_shift == 17);
        assert!(table.bias < 1 << 16 && table.c2_shift <= 2);
        let mut rows = [[0; 2]; SEGMENTS];
        let mut segment = 0;
        while segment < SEGMENTS {
            let row = &table.rows[segment];
            assert!(row.c0 > 0 && row.c0 < 1 << 31);
            assert!(row.c1 > -(1 << 16) && row.c1 < 1 << 16);
            assert!(row.c2 >= 0 && row.c2 < 1 << 10);
            rows[segment] = [row.c0 as i32, (row.c1 << 10 | row.c2) as i32];
            segment += 1;
        }
        Self {
            rows,
            x_bits: table.x_bits,
            square_shift: table.square_shift,
            c0_shift: table.c0_shift,
            c2_shift: table.c2_shift,
            bias: table.bias as i32,
        }
    }

    /// [`Interpolator::evaluate`] of every lane.
    // Always, so that the parameters of each function become constants of its code.
    #[inline(always)]
    pub(super) fn evaluate<const N: usize>(&self, fractions: &[u32; N]) -> [i32; N] {
        let mut rows = [[0i32; 2]; N];
        for (row, fraction) in rows.iter_mut().zip(fractions) {
            *row = self.rows[(fraction >> self.x_bits) as usize % SEGMENTS];
        }
        let mut results = [0; N];
        for lane in 0..N {
            let [c0, factors] = rows[lane];
            let (c1, c2) = (factors >> 10, factors & 0x3ff);
            let x = fractions[lane] & ((1 << self.x_bits) - 1);
            let (high, low) = ((x >> 4).cast_signed(), (x & 15).cast_signed());
            let square = (square(x << self.square_shift) << self.c2_shift).cast_signed();
            let small = ((c0 & 3) << self.c0_shift)
                .wrapping_add(c1.wrapping_mul(low))
                .wrapping_add(c2.wrapping_mul(square))
                .wrapping_add(self.bias);
            let sum = c1.wrapping_mul(high).wrapping_add(small >> 4);
            results[lane] = (c0 >> 2).wrapping_add(sum >> (self.c0_shift + 2 - 4));
        }
        results
    }
}

/// The truncated square of [`super::interpolation`], where the argument for it is;
/// all of it is below `2^17`.
#[inline(always)]
fn square(v: u32) -> u32 {
    let (h, l) = (v >> 9, v & 0x1ff);
    let mut sum = h.wrapping_mul(h) >> 1;
    for k in 1..8 {
        let bit = 0u32.wrapping_sub(h >> k & 1);
        sum = sum.wrapping_add((l >> (9 - k)) & bit);
    }
    sum
}

/// Values of one call: a few registers of each instruction set.
const WIDTH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::mufu::{ex2, rcp, rsq};

    type Scalar = fn(F32) -> F32;
    type Slice = fn(Simd, &mut [F32]);

    const FUNCTIONS: [(&str, Scalar, Slice); 3] =
        [("ex2", ex2, ex2_slice), ("rcp", rcp, rcp_slice), ("rsq", rsq, rsq_slice)];

    #[track_caller]
    fn check(name: &str, scalar: Scalar, slice: Slice, inputs: &[F32]) {
        let expected: Vec<F32> = inputs.iter().map(|&x| scalar(x)).collect();
        for simd in Simd::available() {
            let mut values = inputs.to_vec();
            slice(simd, &mut values);
            for ((x, value), expected) in inputs.iter().zip(values).zip(&expected) {
                assert_eq!(value, *expected, "{name}({x:?}), {}", simd.name());
            }
        }
    }

    #[test]
    fn slices_have_the_bits_of_the_scalar_text() {
        // A step prime to 2^32, so that signs, exponents and fractions all vary.
        let inputs: Vec<F32> =
            (0..1 << 21).map(|i: u32| F32(i.wrapping_mul(0x9e37_79b1))).collect();
        for (name, scalar, slice) in FUNCTIONS {
            check(name, scalar, slice, &inputs);
        }
    }

    #[test]
    fn every_edge_of_an_exponent_has_the_bits_of_the_scalar_text() {
        let edges = |field: u32| {
            [0, 1, 0x3f_ffff, 0x40_0000, 0x7f_fffe, 0x7f_ffff].map(|f| field << 23 | f)
        };
        let inputs: Vec<F32> = (0..512).flat_map(edges).map(F32).collect();
        for (name, scalar, slice) in FUNCTIONS {
            check(name, scalar, slice, &inputs);
        }
    }

    #[test]
    fn every_fraction_has_the_bits_of_the_scalar_text() {
        // One binade of RCP, two of RSQ, and the two exponents of EX2 with which
        // every part occurs: all arguments of each table.
        for (name, scalar, slice, fields) in [
            ("ex2", ex2 as Scalar, ex2_slice as Slice, [127, 127 + 256]),
            ("rcp", rcp, rcp_slice, [127, 1]),
            ("rsq", rsq, rsq_slice, [127, 128]),
        ] {
            for field in fields {
                let inputs: Vec<F32> = (0..1 << 23).map(|f| F32(field << 23 | f)).collect();
                check(name, scalar, slice, &inputs);
            }
        }
    }

    #[test]
    fn slices_of_any_length_are_done_to_the_end() {
        for length in [0, 1, 63, 64, 65, 130] {
            let inputs: Vec<F32> = (0..length).map(|i| F32(0x3f80_0000 + (i << 18))).collect();
            for (name, scalar, slice) in FUNCTIONS {
                check(name, scalar, slice, &inputs);
            }
        }
    }
}
