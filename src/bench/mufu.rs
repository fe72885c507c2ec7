//! Special functions: one value at a time, and over slices in each form. SiLU
//! times up, which looks its values up in a table, is beside them.

use std::hint::black_box;

use serde::Serialize;

use super::rounds::{Budget, Checked, Figures, Times, alternate};
use super::{BenchError, SCALAR, operands};
use crate::isa::mma::Simd;
use crate::isa::mufu;
use crate::num::{Bf16, F32};
use crate::recipe::elementwise::{SiluTable, silu_mul_row};
use crate::recipe::libdevice;

/// All functions measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MufuReport {
    /// Values a measurement computes (count).
    pub values: usize,
    /// Of them, those that are any bit pattern; the rest are what models compute.
    pub any_pattern: usize,
    /// Rounds in which everything took turns (count).
    pub rounds: usize,
    /// One entry a function.
    pub functions: Vec<FunctionReport>,
}

/// One function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FunctionReport {
    /// Its name.
    pub function: &'static str,
    /// The scalar text, nanoseconds a value on one core.
    pub scalar_ns_per_value: Figures,
    /// Forms over slices, where there are any.
    pub slices: Vec<SliceReport>,
}

/// One function over slices.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SliceReport {
    /// The form, or `table`.
    pub simd: &'static str,
    /// Values compared with the scalar text: all of them (count).
    pub compared_with_scalar_text: usize,
    /// Nanoseconds a value on one core.
    pub ns_per_value: Figures,
    /// How many times as fast as the scalar text.
    pub times_scalar: Figures,
}

/// Compares every form with the scalar text on all values, then measures.
///
/// # Errors
/// [`BenchError::Differs`].
pub fn mufu(values: usize, forms: &[Simd], budget: Budget) -> Result<MufuReport, BenchError> {
    let any_pattern = values / 16;
    let mut works = Vec::new();
    for function in &FUNCTIONS {
        let x = function.arguments(values, any_pattern);
        let expected: Vec<F32> = x.iter().map(|&x| (function.scalar)(x)).collect();
        let blank = vec![F32::ZERO; values];
        let same = || expected.iter().copied().enumerate();
        let (own, scalar) = (x.clone(), function.scalar);
        works.push(Checked::new(function.name, SCALAR, same(), blank.clone(), move |out| {
            for (out, &x) in out.iter_mut().zip(black_box(&own)) {
                *out = scalar(x);
            }
        })?);
        if let Some(slice) = function.slice {
            for &simd in forms {
                let what = format!("{} {}", function.name, simd.name());
                let own = x.clone();
                works.push(Checked::new(&what, SCALAR, same(), blank.clone(), move |out| {
                    out.copy_from_slice(black_box(&own));
                    slice(simd, out);
                })?);
            }
        }
    }
    works.extend(silu(values)?);
    let times = alternate(&mut works, budget);
    let rounds = times.first().map_or(0, Times::rounds);
    let mut times = times.iter();
    let mut functions = Vec::new();
    for function in &FUNCTIONS {
        let Some(scalar) = times.next() else { break };
        let forms = if function.slice.is_some() { forms } else { &[] };
        let slices = forms.iter().zip(times.by_ref().take(forms.len()));
        functions.push(FunctionReport {
            function: function.name,
            scalar_ns_per_value: scalar.nanos_each(values),
            slices: slices
                .map(|(simd, slice)| SliceReport {
                    simd: simd.name(),
                    compared_with_scalar_text: values,
                    ns_per_value: slice.nanos_each(values),
                    times_scalar: slice.speed_ratio(scalar),
                })
                .collect(),
        });
    }
    if let (Some(scalar), Some(table)) = (times.next(), times.next()) {
        functions.push(FunctionReport {
            function: "SiLU times up",
            scalar_ns_per_value: scalar.nanos_each(values),
            slices: vec![SliceReport {
                simd: "table",
                compared_with_scalar_text: values,
                ns_per_value: table.nanos_each(values),
                times_scalar: table.speed_ratio(scalar),
            }],
        });
    }
    Ok(MufuReport { values, any_pattern, rounds, functions })
}

/// SiLU times up of a row, element by element and by table.
fn silu(values: usize) -> Result<[Checked<'static>; 2], BenchError> {
    let mut random = operands::Random::new(1);
    let mut row = || -> Vec<Bf16> { (0..values).map(|_| random.normal(1)).collect() };
    let (gate, up) = (row(), row());
    let blank = vec![Bf16::ZERO; values];
    let mut expected = blank.clone();
    silu_mul_row(&gate, &up, &mut expected)?;
    let expected = || expected.iter().copied().enumerate();
    let table = SiluTable::new();
    let (own_gate, own_up) = (gate.clone(), up.clone());
    // Lengths are equal: neither can refuse its rows.
    let scalar = Checked::new("SiLU times up", SCALAR, expected(), blank.clone(), move |out| {
        let _ = silu_mul_row(black_box(&own_gate), black_box(&own_up), out);
    })?;
    let looked_up = Checked::new("SiLU by table", SCALAR, expected(), blank, move |out| {
        let _ = table.mul_row(black_box(&gate), black_box(&up), out);
    })?;
    Ok([scalar, looked_up])
}

/// A function with its usual arguments.
struct Function {
    name: &'static str,
    scalar: fn(F32) -> F32,
    slice: Option<fn(Simd, &mut [F32])>,
    /// Deviation of usual arguments, as a power of two, and whether they are negative
    /// or of both signs.
    spread: i32,
    sign: Sign,
}

/// Sign of usual arguments.
enum Sign {
    Negative,
    Positive,
    Both,
}

impl Function {
    /// Arguments: any bit patterns first, then usual ones.
    fn arguments(&self, values: usize, any_pattern: usize) -> Vec<F32> {
        let mut random = operands::Random::new(1);
        let any: Vec<F32> = (0..any_pattern).map(|_| F32((random.next() >> 32) as u32)).collect();
        let usual = (any_pattern..values).map(|_| {
            let F32(bits) = random.normal(self.spread).widen();
            // bf16 leaves the low half empty; arguments in a model fill it.
            let bits = bits | (random.next() >> 48) as u32;
            F32(match self.sign {
                Sign::Negative => bits | 0x8000_0000,
                Sign::Positive => bits & 0x7fff_ffff,
                Sign::Both => bits,
            })
        });
        any.iter().copied().chain(usual).collect()
    }
}

/// What a forward pass takes from the special-function unit, and CUDA's `expf`.
const FUNCTIONS: [Function; 5] = [
    // Attention: scores below their maximum.
    Function {
        name: "EX2",
        scalar: mufu::ex2,
        slice: Some(mufu::ex2_slice),
        spread: 2,
        sign: Sign::Negative,
    },
    Function {
        name: "RCP",
        scalar: mufu::rcp,
        slice: Some(mufu::rcp_slice),
        spread: 2,
        sign: Sign::Positive,
    },
    // RMSNorm: mean squares.
    Function {
        name: "RSQ",
        scalar: mufu::rsq,
        slice: Some(mufu::rsq_slice),
        spread: 0,
        sign: Sign::Positive,
    },
    Function { name: "LG2", scalar: mufu::lg2, slice: None, spread: 2, sign: Sign::Positive },
    // SiLU: gates of both signs.
    Function { name: "expf", scalar: libdevice::expf, slice: None, spread: 1, sign: Sign::Both },
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_function_has_its_forms() {
        let forms = Simd::available();
        let budget = Budget { rounds: 1, time: Duration::ZERO };
        let report = mufu(300, &forms, budget).unwrap();
        assert_eq!(report.functions.len(), FUNCTIONS.len() + 1);
        assert_eq!(report.functions[FUNCTIONS.len()].slices[0].simd, "table");
        for (function, report) in FUNCTIONS.iter().zip(&report.functions) {
            assert_eq!(report.function, function.name);
            let expected = if function.slice.is_some() { forms.len() } else { 0 };
            assert_eq!(report.slices.len(), expected, "{}", function.name);
            assert!(report.slices.iter().all(|slice| slice.compared_with_scalar_text == 300));
        }
    }

    #[test]
    fn usual_arguments_have_the_sign_and_the_size() {
        for function in &FUNCTIONS {
            let usual = &function.arguments(1000, 100)[100..];
            let negative = usual.iter().filter(|x| x.0 >> 31 == 1).count();
            let expected = match function.sign {
                Sign::Negative => 900..=900,
                Sign::Positive => 0..=0,
                Sign::Both => 350..=550,
            };
            assert!(expected.contains(&negative), "{}: {negative}", function.name);
            assert!(usual.iter().all(|x| x.0 & 0x7f80_0000 < 0x4300_0000), "below 128");
        }
    }
}
