//! Matrix products: the lanes in each form, on one core and on all, beside an
//! ordinary binary32 product.

mod report;
mod shape;

use std::hint::black_box;
use std::time::Instant;

use rayon::prelude::*;

use super::decimal::{Decimal, per_second};
use super::rounds::{Budget, Checked, Times, alternate};
use super::{BenchError, SCALAR, bf16, operands, same, sgemm};
use crate::isa::mma::{MmaProfile, Simd};
use crate::num::{Bf16, F32};
use crate::recipe::gemm::{Walk, walk};

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
        let mut works = vec![sgemm::sgemm(a, b, shape.k)];
        let mut between_forms = Vec::new();
        for (index, (id, mma, oracle)) in profiles.iter().enumerate() {
            let what = format!("{id} {shape} {}", simd.name());
            let walk = Walk::new(mma, simd);
            let one_core = move |out: &mut [F32]| {
                out.fill(F32::ZERO);
                walk.continue_into(&walk.rows(black_box(a), shape.k), black_box(b), out);
            };
            let mut whole = vec![F32::ZERO; shape.m * shape.n];
            one_core(&mut whole);
            let others = first.get(index).into_iter().flatten().copied();
            between_forms.push(same(&what, "first form", others.enumerate(), &whole)?);
            // The threads' panels are compared in full with the one core's product.
            let panels = in_panels(&whole, *shape);
            if first.len() == index {
                first.push(whole.clone());
            }
            let sample = oracle.sample.iter().copied();
            works.push(Checked::new(&what, SCALAR, sample, whole, one_core)?);
            works.push(Checked::new(
                &format!("{what}, all cores"),
                "one core's product",
                panels.iter().copied().enumerate(),
                vec![F32::ZERO; panels.len()],
                move |out| all_cores(walk, black_box(a), black_box(b), *shape, out),
            )?);
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

/// A product divided as the emulator divides it: A decoded once, then panels of
/// columns on all threads, each into its own part of `out`.
fn all_cores(walk: Walk, a: &[Bf16], b: &[Bf16], shape: Shape, out: &mut [F32]) {
    let rows = walk.rows(a, shape.k);
    b.par_chunks(PANEL * shape.k).zip(out.par_chunks_mut(PANEL * shape.m)).for_each(
        |(panel, out)| {
            out.fill(F32::ZERO);
            walk.continue_into(&rows, panel, out);
        },
    );
}

/// A row-major product in the order in which [`all_cores`] leaves it.
fn in_panels(product: &[F32], shape: Shape) -> Vec<F32> {
    let Shape { m, n, .. } = shape;
    let mut out = Vec::with_capacity(m * n);
    for start in (0..n).step_by(PANEL) {
        for row in product.chunks_exact(n) {
            out.extend_from_slice(&row[start..n.min(start + PANEL)]);
        }
    }
    out
}

/// The profiles whose ratio is reported.
const HOPPER: &str = "h200";
const AMPERE: &str = "a100";
/// Output columns that one thread computes at a time, as in `engine::emulator`.
const PANEL: usize = 64;
/// Multiply-adds of the scalar text for a check: it does about 7·10^7 a second.
const SAMPLE: usize = 16_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn panels_are_the_product_in_another_order() {
        let shape = Shape { m: 2, n: 70, k: 1 };
        let product: Vec<F32> = (0..140).map(F32).collect();
        let panels = in_panels(&product, shape);
        assert_eq!(panels[..65], [&product[..64], &product[70..71]].concat());
        assert_eq!(panels[128..], [&product[64..70], &product[134..]].concat());
    }

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
