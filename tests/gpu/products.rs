//! cuBLASLt's catalogued algorithms against the single walk.

use attest::isa::mma::Simd;
use attest::isa::profile::Profile;
use attest::num::{Bf16, F32};
use attest::plan::{Op, Operand, ValueId};
use attest::recipe::Recipe;
use attest::recipe::gemm::{Walk, single_walk};
use rayon::prelude::*;

use super::inputs::{Family, activations, values, with_specials};
use super::operators::{Bench, step};
use super::tally::{Tally, device};

/// (n, k) of the shipped example and of models of its size: q, k/v, o, gate/up,
/// down and the output matrix at hidden sizes 128 to 512.
pub const SMALL: [(usize, usize); 17] = [
    (1536, 256),
    (128, 128),
    (256, 128),
    (128, 256),
    (384, 128),
    (128, 384),
    (512, 128),
    (256, 256),
    (512, 256),
    (256, 512),
    (768, 256),
    (256, 768),
    (1024, 256),
    (2048, 256),
    (4096, 256),
    (1536, 512),
    (512, 1536),
];

/// (n, k) of Qwen3-4B: q, k/v, o, gate/up, down, output matrix.
const QWEN3_4B: [(usize, usize); 6] =
    [(4096, 2560), (1024, 2560), (2560, 4096), (9728, 2560), (2560, 9728), (151_936, 2560)];

/// Largest number of rows that the scalar text computes.
const SCALAR_ROWS: usize = 33;
/// Columns in one task of the lanes.
const PANEL: usize = 64;

/// Numbers of rows around every tile size, and those of real passes.
const ROWS: [usize; 24] = [
    1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 200, 256, 333, 512,
];

fn compare(
    tally: &mut Tally,
    bench: &mut Bench,
    (m, n, k): (usize, usize, usize),
    what: &str,
    (x, weight): (&[Bf16], &[Bf16]),
) {
    let profile = Profile::by_id("h200").unwrap();
    let profile = profile.mma("bf16").unwrap();
    bench.engine.load_weight("weight", &[n, k], weight).unwrap();
    let inputs = vec![Operand::Value(ValueId(0)), Operand::Weight("weight".into())];
    let linear = step(Op::Linear { k }, Recipe::SingleWalk, inputs, n);
    let buffer = bench.upload(m, x);
    let gpu = bench.execute(&linear, &[(0, m)], &[&buffer]);
    let columns: Vec<Vec<F32>> = if m <= SCALAR_ROWS {
        weight.par_chunks(k).map(|row| single_walk(profile, x, row, m, 1, k)).collect()
    } else {
        // The lanes are compared with the scalar text elsewhere, and are faster.
        let walk = Walk::new(profile, Simd::detect());
        let rows = walk.rows(x, k);
        let column = |row: &[Bf16]| {
            let mut out = vec![F32::ZERO; m * (row.len() / k)];
            walk.continue_into(&rows, row, &mut out);
            out
        };
        let panels: Vec<Vec<F32>> = weight.par_chunks(PANEL * k).map(column).collect();
        (0..n)
            .into_par_iter()
            .map(|j| {
                let panel = &panels[j / PANEL];
                panel.iter().skip(j % PANEL).step_by(panel.len() / m).copied().collect()
            })
            .collect()
    };
    let model: Vec<Bf16> =
        (0..m * n).into_par_iter().map(|i| Bf16::round(columns[i % n][i / n])).collect();
    tally.compare(format!("linear m={m} n={n} k={k}, {what}"), gpu.as_bf16().unwrap(), &model);
}

#[test]
fn small_products_are_single_walks() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("small_products_are_single_walks", &device);
    let mut bench = Bench::new(&device, 16);
    for (n, k) in SMALL {
        for m in ROWS {
            let seed = (m * 31 + n * 7 + k) as u64;
            let x = activations(seed, m * k);
            let weight = activations(seed + 1, n * k);
            compare(&mut tally, &mut bench, (m, n, k), "activations", (&x, &weight));
        }
    }
    tally.finish();
}

/// Wide exponents, overflow and subnormals: where orders differ most.
#[test]
fn hard_products_are_single_walks() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("hard_products_are_single_walks", &device);
    let mut bench = Bench::new(&device, 16);
    for family in Family::ALL {
        for m in [1, 16, 100, 200] {
            for (n, k) in [(256, 128), (512, 256), (256, 768)] {
                let seed = (m * 131 + n + k) as u64;
                let x = values(family, seed, m * k);
                let weight: Vec<Bf16> = (0..(n * k) as u64)
                    .map(|i| family.bf16(super::inputs::draw(seed + 1, i), 1))
                    .collect();
                let what = format!("{family:?}");
                compare(&mut tally, &mut bench, (m, n, k), &what, (&x, &weight));
            }
        }
    }
    // A few NaNs and infinities among ordinary values: one in 4,000.
    for m in [1, 17, 200] {
        let (n, k) = (512, 256);
        let x = with_specials(activations(m as u64, m * k), 5, 4000);
        let weight = with_specials(activations(m as u64 + 1, n * k), 6, 4000);
        compare(&mut tally, &mut bench, (m, n, k), "specials", (&x, &weight));
    }
    tally.finish();
}

/// Qwen3-4B's shapes from decode to long prefill.
#[test]
fn large_products_are_single_walks() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("large_products_are_single_walks", &device);
    let mut bench = Bench::new(&device, 16);
    for (n, k) in QWEN3_4B {
        let weight = activations((n + k) as u64, n * k);
        // The emulator is the slow side: fewer rows where there are many columns.
        let rows: &[usize] = if n > 10_000 {
            &[1, 3, 64, 250]
        } else {
            &[1, 5, 17, 33, 64, 100, 128, 250, 256, 512, 1000, 1024, 2500, 4096]
        };
        for &m in rows {
            let x = activations((m * 17 + k) as u64, m * k);
            compare(&mut tally, &mut bench, (m, n, k), "activations", (&x, &weight));
        }
    }
    tally.finish();
}

/// Every number of rows from 1 to 512 finds a catalogued algorithm; for the
/// shapes of Qwen3-4B, counts to 4096 are listed, found or not.
#[test]
fn every_row_count_has_a_catalogued_algorithm() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("every_row_count_has_a_catalogued_algorithm", &device);
    let mut bench = Bench::new(&device, 16);
    for (n, k) in SMALL.into_iter().chain(QWEN3_4B) {
        let mut refused = 0;
        let mut first = None;
        let mut ids = std::collections::BTreeMap::new();
        for m in 1..=512 {
            match bench.engine.algorithm(m, n, k) {
                Ok(found) => {
                    let algorithm = found.attributes;
                    *ids.entry((algorithm.id, algorithm.split_k)).or_insert(0) += 1;
                }
                Err(error) => {
                    refused += 1;
                    first.get_or_insert_with(|| error.to_string());
                }
            }
        }
        let what = format!("algorithm n={n} k={k}, m 1-512, (id, split): {ids:?}");
        tally.add(what, 512, refused, first);
    }
    for (n, k) in QWEN3_4B {
        let beyond: Vec<usize> = (513..=4096).step_by(7).chain([1000, 1024, 2048, 4096]).collect();
        let refused = beyond.iter().filter(|&&m| bench.engine.algorithm(m, n, k).is_err());
        let refused: Vec<usize> = refused.copied().collect();
        println!("note: n={n} k={k}: refused {} of {}: {refused:?}", refused.len(), beyond.len());
    }
    tally.finish();
}
