//! Block-scaled instructions: MX and NVFP4 formats.

use serde::{Deserialize, Serialize};

use super::{Format, MAX_PRODUCTS, MmaProfile, Number, Operands, Term, add_block};

/// A scale format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ScaleFormat {
    /// A power of two, exponent plus 127; `ff` is NaN.
    Ue8m0,
    /// An e4m3 code whose sign bit is ignored.
    Ue4m3,
}

impl ScaleFormat {
    /// Decodes a scale.
    pub fn decode(self, code: u32) -> Number {
        match self {
            Self::Ue8m0 if code & 0xff == 0xff => Number::Nan,
            Self::Ue8m0 => Number::Finite(Term {
                negative: false,
                significand: 1,
                fraction_bits: 0,
                exponent: (code & 0xff) as i32 - 127,
            }),
            Self::Ue4m3 => Format::E4m3.decode(code & 0x7f),
        }
    }
}

/// Scale codes of one dot product.
#[derive(Clone, Copy, Debug)]
pub struct Scales<'s> {
    /// Their format.
    pub format: ScaleFormat,
    /// Number of k that share a scale.
    pub shared_by: usize,
    /// Scales of A, k ascending.
    pub a: &'s [u32],
    /// Scales of B, k ascending.
    pub b: &'s [u32],
}

/// Returns `c + Σ scale·a[i]·b[i]` of a block-scaled instruction, binary32 bits.
///
/// R11: with `group` 1 the exponents of both scales are added to the exponent of
/// each product, which is then a term of one block FMA. With a larger group the
/// products of a group are summed exactly, their own exponents included in the
/// fixed-point value; that sum times the scale significands is one term, whose
/// exponent is that of the scales alone. A group whose products are all zero is
/// a zero term; one whose products cancel keeps its exponent in the maximum.
///
/// # Special values
/// A NaN scale gives NaN.
///
/// # Panics
/// If the lengths of operands and scales do not fit, or there are more than
/// [`MAX_PRODUCTS`] terms.
///
/// # Source
/// Xie et al., arXiv:2511.10909; vectors: `spec/vectors/mxf*.bin`.
pub fn block_scale(
    profile: &MmaProfile,
    operands: Operands,
    group: usize,
    scales: Scales<'_>,
    (a, b): (&[u32], &[u32]),
    c: u32,
) -> u32 {
    assert_eq!(a.len(), b.len(), "factors of a block-scaled product");
    let mut terms = [Number::ZERO; MAX_PRODUCTS];
    let groups = a.chunks(group).zip(b.chunks(group));
    let mut largest = None;
    let count = groups.len();
    for (index, (term, (a, b))) in terms[..count].iter_mut().zip(groups).enumerate() {
        let scale = index * group / scales.shared_by;
        let scale =
            scales.format.decode(scales.a[scale]).times(scales.format.decode(scales.b[scale]));
        let mut products =
            a.iter().zip(b).map(|(&a, &b)| operands.a.decode(a).times(operands.b.decode(b)));
        *term = if group == 1 {
            products.next().unwrap_or(Number::ZERO).times(scale)
        } else {
            let sum = group_sum(products);
            if let (GroupSum::Cancelled, Number::Finite(scale)) = (&sum, scale)
                && scale.significand != 0
            {
                largest = largest.max(Some(scale.exponent));
            }
            sum.number().times(scale)
        };
    }
    // A cancelled group is zero, so it acts only as a higher floor (R3).
    let floor = largest.unwrap_or(i32::MIN).max(i32::from(profile.min_alignment_exponent));
    let profile = MmaProfile { min_alignment_exponent: floor as i16, ..*profile };
    add_block(&profile, &terms[..count], Format::F32.decode(c))
}

enum GroupSum {
    /// All products are zero.
    Empty,
    /// Products are there but add up to zero.
    Cancelled,
    /// A number with exponent 0, or NaN.
    Sum(Number),
}

impl GroupSum {
    fn number(self) -> Number {
        match self {
            Self::Empty | Self::Cancelled => Number::ZERO,
            Self::Sum(number) => number,
        }
    }
}

/// Adds products as whole numbers of 2^-2, which e2m1 products are.
fn group_sum(products: impl Iterator<Item = Number>) -> GroupSum {
    const UNIT: i32 = -2; // e2m1 numbers are whole numbers of a half
    let (mut sum, mut any) = (0, false);
    for product in products {
        match product {
            // e2m1 has neither; a profile with another format would land here.
            Number::Nan | Number::Infinite { .. } => return GroupSum::Sum(Number::Nan),
            Number::Finite(term) => {
                any |= term.significand != 0;
                sum += term.cut(UNIT);
            }
        }
    }
    match (any, sum) {
        (false, _) => GroupSum::Empty,
        (true, 0) => GroupSum::Cancelled,
        (true, _) => GroupSum::Sum(Number::Finite(Term {
            negative: sum < 0,
            significand: sum.unsigned_abs(),
            fraction_bits: -UNIT,
            exponent: 0,
        })),
    }
}
