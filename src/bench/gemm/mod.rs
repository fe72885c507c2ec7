//! Matrix products: the lanes in each form, on one core and on all, beside an
//! ordinary binary32 product.

mod report;
mod shape;

use std::hint::black_box;
use std::time::Instant;

use super::decimal::{Decimal, per_second};
use super::rounds::{Budget, Checked, Times, alternate};
use super::{BenchError, SCALAR, bf16, one_thread, operands, same, sgemm};
use crate::engine::product::linear;
use crate::isa::mma::{MmaProfile, Simd};
use crate::num::{Bf16, F32};
use crate::recipe::gemm::{Walk, walk};
use crate::recipe::split_k::Slices;

pub use report::{FormReport, GemmReport, ProfileReport, ShapeReport};
pub use shape::Shape;

/// What to measure.
#[derive(Clone, Debug)]
pub struct GemmRequest {
    /// Ids of the profiles, alternated with each other.
    pub profiles: Vec<String>,
    /// Shapes, one after the other.
    pub shapes: Vec<Shape>,
    /// Forms of the lanes, one after the other: a slow one would keep the others'
    /// rounds apart.
    pub forms: Vec<Simd>,
    /// Rounds for each shape and form.
    pub budget: Budget,
}

/// Checks, then measures, every profile, shape and form asked for.
///
/// # Errors
/// [`BenchError::Differs`] if an output of any form is not the scalar text's or
/// not the other forms'; [`BenchError::Profile`].
pub fn gemm(request: &GemmRequest) -> Result<GemmReport, BenchError> {
    let mut shapes = Vec::new();
    for &shape in &request.shapes {
        let product = Product::new(request, shape)?;
        let mut first = Vec::new();
        let mut forms = Vec::new();
        for &simd in &request.forms {
            forms.push(product.measure(simd, &mut first, request.budget)?);
        }
        shapes.push(ShapeReport { shape, multiply_adds: shape.multiply_adds(), forms });
    }
    Ok(GemmReport { yardstick: sgemm::NAME, shapes })
}

/// Operands of one shape, and what each profile makes of them.
struct Product {
    shape: Shape,
    a: Vec<Bf16>,
    b: Vec<Bf16>,
    profiles: Vec<(String, MmaProfile, Oracle)>,
}

impl Product {
    fn new(request: &GemmRequest, shape: Shape) -> Result<Self, BenchError> {
        let a = operands::activations(1, shape.m, shape.k);
        let b = operands::weights(2, shape.n, shape.k);
        let mut profiles = Vec::new();
        for id in &request.profiles {
            let mma = bf16(id)?;
            profiles.push((id.clone(), mma, Oracle::new(&mma, &a, &b, shape)));
        }
        Ok(Self { shape, a, b, profiles })
    }

    /// Measures one form; `first` keeps the first form's outputs of each profile.
    fn measure(
        &self,
        simd: Simd,
        first: &mut Vec<Vec<F32>>,
        budget: Budget,
    ) -> Result<FormReport, BenchError> {
        let Self { shape, a, b, profiles } = self;
        let (one, slices) = (&one_thread()?, &Slices::whole(shape.k));
        let mut works = vec![sgemm::sgemm(a, b, shape.k)];
        let mut between_forms = Vec::new();
        for (index, (id, mma, oracle)) in profiles.iter().enumerate() {
            let what = format!("{id} {shape} {}", simd.name());
            let walk = Walk::new(mma, simd);
            let mut whole = walk.single_walk(a, b, shape.m, shape.n, shape.k);
            let others = first.get(index).into_iter().flatten().copied();
            between_forms.push(same(&what, "first form", others.enumerate(), &whole)?);
            same(&what, SCALAR, oracle.sample.iter().copied(), &whole)?;
            if first.len() == index {
                first.push(whole.clone());
            }
            // What is timed ends in bf16; the check of all bits was on the accumulators.
            let rounded: Vec<Bf16> = whole.drain(..).map(Bf16::round).collect();
            let product =
                move |out: &mut [Bf16]| linear(&walk, black_box(a), black_box(b), slices, out);
            let one_core = move |out: &mut [Bf16]| one.install(|| product(out));
            for (threads, work) in
                [("one core", Box::new(one_core) as Work<'_>), ("all cores", Box::new(product))]
            {
                let (what, blank) = (format!("{what}, {threads}"), vec![Bf16::ZERO; rounded.len()]);
                let expected = rounded.iter().copied().enumerate();
                works.push(Checked::new(&what, "rounded accumulator", expected, blank, work)?);
            }
            works.push(Checked::yardstick(move || {
                drop(black_box(walk.rows(black_box(a), shape.k)));
            }));
        }
        let times = alternate(&mut works, budget);
        Ok(self.report(simd, &between_forms, &times))
    }

    /// Times are in the order of the works: the yardstick, then three a profile.
    fn report(&self, simd: Simd, between_forms: &[usize], times: &[Times]) -> FormReport {
        let Shape { m, k, .. } = self.shape;
        let multiply_adds = self.shape.multiply_adds();
        let (yardstick, times) = (&times[0], &times[1..]);
        let each = self.profiles.iter().zip(between_forms).zip(times.chunks_exact(3));
        let profiles = each.map(|(((id, mma, oracle), &compared_between_forms), times)| {
            let (one_core, all_cores, decode) = (&times[0], &times[1], &times[2]);
            ProfileReport {
                profile: id.clone(),
                n_fma: mma.n_fma,
                compared_with_scalar_text: oracle.sample.len(),
                compared_between_forms,
                scalar_text_gmac_per_s: oracle.rate,
                one_core_gmac_per_s: one_core.rate(multiply_adds),
                all_cores_gmac_per_s: all_cores.rate(multiply_adds),
                scaling: all_cores.speed_ratio(one_core),
                ratio_to_sgemm: one_core.speed_ratio(yardstick),
                decode_gelem_per_s: decode.rate((m * k) as u64),
            }
        });
        let one_core = |wanted: &str| {
            let at = self.profiles.iter().position(|(id, ..)| id == wanted)?;
            Some(&times[3 * at])
        };
        FormReport {
            simd: simd.name(),
            rounds: yardstick.rounds(),
            sgemm_gmac_per_s: yardstick.rate(multiply_adds),
            profiles: profiles.collect(),
            ampere_to_hopper: one_core(AMPERE)
                .zip(one_core(HOPPER))
                .map(|(ampere, hopper)| ampere.speed_ratio(hopper)),
        }
    }
}

/// A product that may be timed.
type Work<'a> = Box<dyn FnMut(&mut [Bf16]) + 'a>;

/// Outputs of the scalar text at places spread over the product.
struct Oracle {
    sample: Vec<(usize, F32)>,
    rate: Decimal,
}

impl Oracle {
    /// Takes places at an odd stride, so that they meet every lane of a panel and
    /// every row, as many as the scalar text computes in about a fifth of a second.
    fn new(mma: &MmaProfile, a: &[Bf16], b: &[Bf16], shape: Shape) -> Self {
        let Shape { m, n, k } = shape;
        let count = (SAMPLE / k).clamp(1, m * n);
        let stride = (m * n / count).max(1) | 1;
        let start = Instant::now();
        let sample: Vec<(usize, F32)> = (0..m * n)
            .step_by(stride)
            .map(|at| {
                let (row, column) = (at / n, at % n);
                let (a, b) = (&a[row * k..(row + 1) * k], &b[column * k..(column + 1) * k]);
                (at, walk(mma, a, b, F32::ZERO))
            })
            .collect();
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let rate = per_second((sample.len() * k) as u64, nanos);
        Self { sample, rate }
    }
}

/// The profiles whose ratio is reported.
const HOPPER: &str = "h200";
const AMPERE: &str = "a100";
/// Multiply-adds of the scalar text for a check: it does about 7·10^7 a second.
const SAMPLE: usize = 16_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_form_is_compared_in_full_and_with_the_scalar_text() {
        let request = GemmRequest {
            profiles: vec![HOPPER.into(), AMPERE.into()],
            shapes: vec![Shape { m: 3, n: 70, k: 40 }],
            forms: Simd::available(),
            budget: Budget { rounds: 2, time: Duration::ZERO },
        };
        let report = gemm(&request).unwrap();
        let shape = &report.shapes[0];
        assert_eq!(shape.multiply_adds, 8400);
        assert_eq!(shape.forms.len(), Simd::available().len());
        for (index, form) in shape.forms.iter().enumerate() {
            assert_eq!((form.rounds, form.profiles.len()), (2, 2));
            assert!(form.ampere_to_hopper.is_some());
            for profile in &form.profiles {
                assert_eq!(profile.compared_with_scalar_text, 210, "small products in full");
                let others = if index == 0 { 0 } else { 210 };
                assert_eq!(profile.compared_between_forms, others);
            }
        }
    }

    #[test]
    fn an_unknown_profile_is_named() {
        let request = GemmRequest {
            profiles: vec!["h2000".into()],
            shapes: vec![Shape { m: 1, n: 1, k: 1 }],
            forms: vec![Simd::PORTABLE],
            budget: Budget { rounds: 1, time: Duration::ZERO },
        };
        assert!(gemm(&request).unwrap_err().to_string().starts_with("profile h2000: "));
    }
}
