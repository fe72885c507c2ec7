//! Matrix products: the lanes in each form, on one core and on all, beside an
//! ordinary binary32 product.

use std::hint::black_box;
use std::str::FromStr;
use std::time::Instant;

use rayon::prelude::*;
use serde::Serialize;

use super::decimal::{Decimal, per_second};
use super::rounds::{Budget, Checked, Figures, Times, alternate};
use super::{BenchError, SCALAR, bf16, operands, same, sgemm};
use crate::isa::mma::{MmaProfile, Simd};
use crate::num::{Bf16, F32};
use crate::recipe::gemm::{Walk, walk};

/// What to measure.
#[derive(Clone, Debug)]
pub struct GemmRequest {
    /// Ids of the profiles, alternated with each other.
    pub profiles: Vec<String>,
    /// Shapes, one after the other.
    pub shapes: Vec<Shape>,
    /// Forms of the lanes.
    pub forms: Vec<Simd>,
    /// Rounds for each shape.
    pub budget: Budget,
}

/// Size of a product: `m` rows of activations, `n` rows of a weight, `k` deep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Shape {
    /// Rows of A (count).
    pub m: usize,
    /// Columns of the result (count).
    pub n: usize,
    /// Products an output (count).
    pub k: usize,
}

/// All shapes measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct GemmReport {
    /// The yardstick's name.
    pub yardstick: &'static str,
    /// One entry a shape.
    pub shapes: Vec<ShapeReport>,
}

/// One shape.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShapeReport {
    /// The shape.
    pub shape: Shape,
    /// Multiply-adds of one product (count).
    pub multiply_adds: u64,
    /// Rounds in which everything below took turns (count).
    pub rounds: usize,
    /// The yardstick on one core, GMAC/s.
    pub sgemm_gmac_per_s: Figures,
    /// One entry a profile and form.
    pub forms: Vec<FormReport>,
    /// Ampere's rate over Hopper's on one core, by form; if both were measured.
    pub ampere_to_hopper: Vec<FormRatio>,
}

/// Ratio between two profiles.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FormRatio {
    /// The form of the lanes.
    pub simd: &'static str,
    /// The ratio of their rates.
    pub ratio: Figures,
}

/// One profile and one form of the lanes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FormReport {
    /// The profile's id.
    pub profile: String,
    /// Products a block (count).
    pub n_fma: u8,
    /// The form of the lanes.
    pub simd: &'static str,
    /// Outputs compared with the scalar text: whole rows or columns, spread (count).
    pub compared_with_scalar_text: usize,
    /// Outputs compared with the other forms: all of them (count).
    pub compared_between_forms: usize,
    /// The scalar text on one core, GMAC/s, measured once while checking.
    pub scalar_text_gmac_per_s: Decimal,
    /// One core, GMAC/s; decoding A included.
    pub one_core_gmac_per_s: Figures,
    /// All threads, GMAC/s; A is decoded on one of them.
    pub all_cores_gmac_per_s: Figures,
    /// All threads over one core.
    pub scaling: Figures,
    /// One core over the yardstick.
    pub ratio_to_sgemm: Figures,
    /// Decoding of A on one core, 10^9 elements a second.
    pub decode_gelem_per_s: Figures,
}

impl Shape {
    /// The shape of the targets in the documentation.
    pub const DEFAULT: Self = Self { m: 256, n: 2560, k: 2560 };

    /// Row counts from decoding one token to a long prompt, and the long and the
    /// wide products of Qwen3-4B.
    pub const ALL: [Self; 10] = [
        Self::DEFAULT,
        Self { m: 1, n: 2560, k: 2560 },
        Self { m: 4, n: 2560, k: 2560 },
        Self { m: 16, n: 2560, k: 2560 },
        Self { m: 64, n: 2560, k: 2560 },
        Self { m: 250, n: 2560, k: 2560 },
        Self { m: 1024, n: 2560, k: 2560 },
        Self { m: 250, n: 2560, k: 9728 },
        Self { m: 250, n: 9728, k: 2560 },
        Self { m: 16, n: 151_936, k: 2560 },
    ];

    fn multiply_adds(self) -> u64 {
        [self.m, self.n, self.k].map(|size| size as u64).iter().product()
    }
}

impl FromStr for Shape {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self, BenchError> {
        let refused = || BenchError::Shape { text: text.into() };
        let sizes: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
        let [m, n, k] = sizes.map_err(|_| refused())?[..] else { return Err(refused()) };
        let fits = |a: usize, b: usize| a.checked_mul(b).is_some_and(|ab| ab > 0 && ab < LARGEST);
        let possible = fits(m, k) && fits(n, k) && fits(m, n);
        if possible { Ok(Self { m, n, k }) } else { Err(refused()) }
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}x{}x{}", self.m, self.n, self.k))
    }
}

/// Checks, then measures, every profile, shape and form asked for.
///
/// # Errors
/// [`BenchError::Differs`] if an output of any form is not the scalar text's or
/// not the other forms'; [`BenchError::Profile`].
pub fn gemm(request: &GemmRequest) -> Result<GemmReport, BenchError> {
    let shapes = request.shapes.iter().map(|&shape| measure(request, shape));
    Ok(GemmReport { yardstick: sgemm::NAME, shapes: shapes.collect::<Result<_, _>>()? })
}

/// A profile and a form, with what the check found.
struct Contestant {
    id: String,
    mma: MmaProfile,
    simd: Simd,
    oracle: Oracle,
    between_forms: usize,
}

fn measure(request: &GemmRequest, shape: Shape) -> Result<ShapeReport, BenchError> {
    let a = operands::activations(1, shape.m, shape.k);
    let b = operands::weights(2, shape.n, shape.k);
    let mut contestants = Vec::new();
    let mut works = vec![sgemm::sgemm(&a, &b, shape.k)];
    for id in &request.profiles {
        let mma = bf16(id)?;
        let oracle = Oracle::new(&mma, &a, &b, shape);
        let mut first: Option<Vec<F32>> = None;
        for &simd in &request.forms {
            let what = format!("{id} {shape} {}", simd.name());
            let walk = Walk::new(&mma, simd);
            let (a, b) = (&a, &b);
            let one_core = move |out: &mut [F32]| {
                out.fill(F32::ZERO);
                walk.continue_into(&walk.rows(black_box(a), shape.k), black_box(b), out);
            };
            let mut whole = vec![F32::ZERO; shape.m * shape.n];
            one_core(&mut whole);
            let mut between_forms = 0;
            match &first {
                Some(first) => {
                    let others = first.iter().copied().enumerate();
                    between_forms = same(&what, "narrowest form", others, &whole)?;
                }
                None => first = Some(whole.clone()),
            }
            // The threads' panels are compared in full with the one core's product.
            let panels = in_panels(&whole, shape);
            let sample = oracle.sample.iter().copied();
            works.push(Checked::new(&what, SCALAR, sample, whole, one_core)?);
            works.push(Checked::new(
                &format!("{what}, all cores"),
                "one core's product",
                panels.iter().copied().enumerate(),
                vec![F32::ZERO; panels.len()],
                move |out| all_cores(walk, black_box(a), black_box(b), shape, out),
            )?);
            works.push(Checked::yardstick(move || {
                drop(black_box(walk.rows(black_box(a), shape.k)));
            }));
            contestants.push(Contestant {
                id: id.clone(),
                mma,
                simd,
                oracle: oracle.clone(),
                between_forms,
            });
        }
    }
    let times = alternate(&mut works, request.budget);
    Ok(report(shape, &contestants, &times))
}

/// Times are in the order of the works: the yardstick, then three a contestant.
fn report(shape: Shape, contestants: &[Contestant], times: &[Times]) -> ShapeReport {
    let multiply_adds = shape.multiply_adds();
    let (yardstick, times) = (&times[0], &times[1..]);
    let forms = contestants.iter().zip(times.chunks_exact(3)).map(|(contestant, times)| {
        let [one_core, all_cores, decode] = [&times[0], &times[1], &times[2]];
        FormReport {
            profile: contestant.id.clone(),
            n_fma: contestant.mma.n_fma,
            simd: contestant.simd.name(),
            compared_with_scalar_text: contestant.oracle.sample.len(),
            compared_between_forms: contestant.between_forms,
            scalar_text_gmac_per_s: contestant.oracle.rate,
            one_core_gmac_per_s: one_core.rate(multiply_adds),
            all_cores_gmac_per_s: all_cores.rate(multiply_adds),
            scaling: all_cores.speed_ratio(one_core),
            ratio_to_sgemm: one_core.speed_ratio(yardstick),
            decode_gelem_per_s: decode.rate((shape.m * shape.k) as u64),
        }
    });
    let one_core = |id: &str, simd: Simd| {
        let at = contestants.iter().position(|c| c.id == id && c.simd == simd)?;
        Some(&times[3 * at])
    };
    let ampere_to_hopper = contestants.iter().filter(|c| c.id == AMPERE).filter_map(|c| {
        let ratio = one_core(AMPERE, c.simd)?.speed_ratio(one_core(HOPPER, c.simd)?);
        Some(FormRatio { simd: c.simd.name(), ratio })
    });
    ShapeReport {
        shape,
        multiply_adds,
        rounds: yardstick.rounds(),
        sgemm_gmac_per_s: yardstick.rate(multiply_adds),
        ampere_to_hopper: ampere_to_hopper.collect(),
        forms: forms.collect(),
    }
}

/// Outputs of the scalar text at places spread over the product.
#[derive(Clone)]
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
/// Most elements of an operand: its binary32 form then takes 4 GB at most.
const LARGEST: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_shape_is_three_numbers() {
        assert_eq!("256x2560x64".parse::<Shape>().unwrap(), Shape { m: 256, n: 2560, k: 64 });
        // (text, reason)
        let cases = [
            ("", "nothing"),
            ("1x2", "two numbers"),
            ("1x2x3x4", "four"),
            ("1x0x3", "an empty matrix"),
            ("1x-2x3", "a sign"),
            ("1000000000x1x4", "more than an operand may have"),
            ("18446744073709551615x2x2", "more than an index has"),
        ];
        for (text, reason) in cases {
            let error = text.parse::<Shape>().unwrap_err().to_string();
            assert!(error.contains(&format!("shape {text} ")), "{reason}: {error}");
        }
    }

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
        assert_eq!(shape.rounds, 2);
        let forms = Simd::available().len();
        assert_eq!(shape.forms.len(), 2 * forms);
        assert_eq!(shape.ampere_to_hopper.len(), forms);
        for (index, form) in shape.forms.iter().enumerate() {
            assert_eq!(form.compared_with_scalar_text, 210, "small products in full");
            let others = if index % forms == 0 { 0 } else { 210 };
            assert_eq!(form.compared_between_forms, others);
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
