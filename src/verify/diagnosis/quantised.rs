//! Weights as a quantised checkpoint would have them, back in bf16.
//!
//! Only forms that a provider could have used without saying so; what a match means is
//! that the recorded bits are those of products of these weights.

use rayon::prelude::*;

use crate::engine::emulator::Reform;
use crate::isa::fp32::{fadd, fdiv, fmax, fmul, fsub};
use crate::num::{Bf16, F32};
use crate::plan::Step;

/// A narrower form of weights, with one scale for each row (output column).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WeightForm {
    /// FP8 E4M3: the row's largest magnitude becomes 448.
    E4m3,
    /// 8-bit integers, symmetric: the row's largest magnitude becomes 127.
    Int8,
}

impl WeightForm {
    /// Name in sentences.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::E4m3 => "FP8 e4m3 by rows",
            Self::Int8 => "INT8 by rows",
        }
    }

    /// Rounds rows of `k` through the form.
    fn rows(self, weight: &[Bf16], k: usize) -> Vec<Bf16> {
        let mut out = weight.to_vec();
        out.par_chunks_mut(k).for_each(|row| self.row(row));
        out
    }

    /// `round(w / scale) · scale` for one row, `scale = max |w| / largest`.
    ///
    /// # Rounding
    /// FDIV for scale and quotient; to the form, nearest even; FMUL; to bf16. A row of
    /// zeros or with a NaN or an infinity stays as it is.
    fn row(self, row: &mut [Bf16]) {
        let magnitude = |x: &Bf16| Bf16(x.0 & 0x7fff).widen();
        let most = row.iter().map(magnitude).fold(F32::ZERO, fmax);
        if most.is_zero() || row.iter().any(|x| !x.is_finite()) {
            return;
        }
        let largest = match self {
            Self::E4m3 => F32(0x43e0_0000), // 448
            Self::Int8 => F32(0x42fe_0000), // 127
        };
        let scale = fdiv(most, largest);
        if scale.is_zero() {
            return;
        }
        for x in row {
            let quotient = fdiv(x.widen(), scale);
            let rounded = match self {
                Self::E4m3 => to_e4m3(quotient),
                Self::Int8 => to_multiple(quotient, 0),
            };
            *x = Bf16::round(fmul(rounded, scale));
        }
    }
}

/// The nearest E4M3 number, ties to even, for magnitudes up to 448.
fn to_e4m3(x: F32) -> F32 {
    // Biased exponents in binary32; the smallest normal number of E4M3 is 2^-6, and below
    // it steps are as between 2^-6 and 2^-5: 2^-9.
    let exponent = (x.0 >> 23 & 0xff) as i32 - 127;
    to_multiple(x, exponent.max(-6) - 3)
}

/// The nearest multiple of `2^unit`, ties to even; exact for magnitudes below
/// `2^(unit + 22)`.
fn to_multiple(x: F32, unit: i32) -> F32 {
    // Where 1.5 · 2^(23 + unit) is added, the last place of the sum is 2^unit.
    let anchor = F32((((23 + unit + 127) as u32) << 23) | 0x0040_0000);
    fsub(fadd(x, anchor), anchor)
}

/// Changes the weights of products that belong to a layer.
pub(super) fn of_products_in_layers(form: WeightForm) -> Reform {
    match form {
        WeightForm::E4m3 => {
            |step: &Step, weight, k| step.layer.is_some().then(|| WeightForm::E4m3.rows(weight, k))
        }
        WeightForm::Int8 => {
            |step: &Step, weight, k| step.layer.is_some().then(|| WeightForm::Int8.rows(weight, k))
        }
    }
}

/// Changes the weights of every product.
pub(super) fn of_every_product(form: WeightForm) -> Reform {
    match form {
        WeightForm::E4m3 => |_, weight, k| Some(WeightForm::E4m3.rows(weight, k)),
        WeightForm::Int8 => |_, weight, k| Some(WeightForm::Int8.rows(weight, k)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::mma::{Format, Number};

    #[test]
    fn every_e4m3_number_stays_and_between_two_the_nearer_is_taken() {
        // Finite magnitudes, ascending: code 0x7f is the NaN.
        let value = |code: u32| match Format::E4m3.decode(code) {
            Number::Finite(term) => {
                let unit = term.exponent - term.fraction_bits;
                term.significand as f32 * f32::from_bits(((unit + 127) as u32) << 23)
            }
            Number::Infinite { .. } | Number::Nan => unreachable!(),
        };
        for code in 0..0x7e_u32 {
            let (low, high) = (value(code), value(code + 1));
            let to = |x: f32| to_e4m3(F32::from_host(x)).to_host();
            assert_eq!(to(low), low, "{code:02x}");
            assert_eq!(to(-high), -high, "{code:02x}");
            let middle = low.midpoint(high);
            let even = if code % 2 == 0 { low } else { high };
            assert_eq!(to(middle), even, "above {code:02x}");
            assert_eq!(to(middle.next_up()), high, "above {code:02x}");
            assert_eq!(to(middle.next_down()), low, "above {code:02x}");
        }
    }

    #[test]
    fn integers_are_nearest_even() {
        for (x, expected) in [(0.5, 0.0), (1.5, 2.0), (-2.5, -2.0), (126.51, 127.0), (0.2, 0.0)] {
            assert_eq!(to_multiple(F32::from_host(x), 0).to_host(), expected, "{x}");
        }
    }

    #[test]
    fn a_row_keeps_its_largest_and_loses_what_is_far_below() {
        let row = [Bf16(0x42fe), Bf16(0x3f9a), Bf16(0xbe80), Bf16(0)]; // 127, 1.203, -0.25, 0
        for (form, second, third) in [
            (WeightForm::Int8, 0x3f80, 0x0000), // 1 and 0
            (WeightForm::E4m3, 0x3f91, 0xbe7e), // 4 and -0.875 times 127/448
        ] {
            let mut rounded = row;
            form.row(&mut rounded);
            assert_eq!(rounded[0], row[0], "{form:?}");
            assert_eq!(rounded[3], row[3], "{form:?}");
            assert_eq!((rounded[1].0, rounded[2].0 & 0x7fff), (second, third & 0x7fff), "{form:?}");
        }
        let mut odd = [Bf16(0x7f80), Bf16(0x3f9a)];
        WeightForm::Int8.row(&mut odd);
        assert_eq!(odd, [Bf16(0x7f80), Bf16(0x3f9a)]);
    }
}
