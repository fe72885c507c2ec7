//! Every operator's kernel against its recipe, on random and special rows.

use attest::engine::cuda::{Buffer, CudaEngine};
use attest::engine::{Engine, Group, Part};
use attest::isa::profile::Profile;
use attest::num::{Bf16, Data, Dtype, F32, Tensor};
use attest::plan::{CacheSlot, Half, Op, Operand, Pass, Step, ValueId};
use attest::recipe::attention::HeadRows;
use attest::recipe::attention::flash2::flash2_row;
use attest::recipe::catalog::{Catalog, Choice};
use attest::recipe::rope::{InverseFrequencies, rope_row};
use attest::recipe::{Recipe, RowReduction};
use attest::recipe::{argmax, elementwise, embedding, rms_norm};
use rayon::prelude::*;

use super::inputs::{Family, SPECIAL, activations, draw, values, with_specials};
use super::tally::{Tally, device};

/// One step on the GPU, without a plan.
pub struct Bench {
    pub engine: CudaEngine,
}

impl Bench {
    pub fn new(device: &attest::engine::cuda::Device, positions: usize) -> Self {
        let catalog = Catalog::by_id("h200-cublaslt-13.1").unwrap();
        Self { engine: CudaEngine::new(device, catalog, Choice::Unsplit, positions).unwrap() }
    }

    pub fn upload(&mut self, rows: usize, elements: &[Bf16]) -> Buffer {
        let tensor = Tensor::matrix(rows, elements.len() / rows, elements.to_vec());
        self.engine.upload(&tensor).unwrap()
    }

    /// Executes one step for passes given as (start, tokens).
    pub fn execute(
        &mut self,
        step: &Step,
        passes: &[(usize, usize)],
        inputs: &[&Buffer],
    ) -> Tensor {
        let steps: Vec<Step> = passes
            .iter()
            .map(|&(_, tokens)| {
                let rows = if step.op == Op::LastToken { 1 } else { tokens };
                Step { rows, ..step.clone() }
            })
            .collect();
        let parts = passes.iter().zip(&steps).enumerate();
        let parts = parts
            .map(|(index, (&(start, tokens), step))| Part {
                pass: Pass::alone(index, start, tokens),
                step,
            })
            .collect();
        let out = self.engine.execute(&Group { parts }, inputs).unwrap();
        self.engine.read_back(&out).unwrap().into_owned()
    }
}

/// A step with one value as its operand.
pub fn step(op: Op, recipe: Recipe, inputs: Vec<Operand>, columns: usize) -> Step {
    let dtype = if op == Op::Argmax { Dtype::U32 } else { Dtype::Bf16 };
    let output = ValueId(1);
    Step {
        name: op.to_string(),
        layer: None,
        op,
        recipe,
        inputs,
        output,
        keeps: None,
        rows: 0,
        columns,
        dtype,
    }
}

fn value() -> Operand {
    Operand::Value(ValueId(0))
}

fn weight() -> Operand {
    Operand::Weight("weight".into())
}

/// Applies a recipe to each row.
fn by_row(
    x: &[Bf16],
    columns: usize,
    recipe: impl Fn(usize, &[Bf16], &mut [Bf16]) + Sync,
) -> Vec<Bf16> {
    let mut out = vec![Bf16::ZERO; x.len()];
    x.par_chunks(columns)
        .zip(out.par_chunks_mut(columns))
        .enumerate()
        .for_each(|(row, (x, out))| recipe(row, x, out));
    out
}

#[test]
fn gathers_copy_bits() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("gathers_copy_bits", &device);
    let mut bench = Bench::new(&device, 16);
    let (vocabulary, hidden) = (1000, 2560);
    let table = values(Family::AnyBits, 11, vocabulary * hidden);
    bench.engine.load_weight("weight", &[vocabulary, hidden], &table).unwrap();
    let tokens: Vec<u32> =
        (0..300).map(|i| if i == 0 { 999 } else { draw(12, i) as u32 % 1000 }).collect();
    let ids = Tensor::new(&[300, 1], Data::U32(tokens.clone())).unwrap();
    let ids = bench.engine.upload(&ids).unwrap();
    let gather = step(Op::Embedding, Recipe::Copy, vec![Operand::Tokens, weight()], hidden);
    let gpu = bench.execute(&gather, &[(0, 300)], &[&ids]);
    let mut model = vec![Bf16::ZERO; 300 * hidden];
    for (token, out) in tokens.iter().zip(model.chunks_mut(hidden)) {
        embedding::embedding_row(&table, *token, out).unwrap();
    }
    tally.compare("embedding, any bits", gpu.as_bf16().unwrap(), &model);

    let x = bench.upload(300, &model);
    let last = step(Op::LastToken, Recipe::Copy, vec![value()], hidden);
    let gpu = bench.execute(&last, &[(0, 1), (1, 250), (251, 49)], &[&x]);
    let rows = [0, 250, 299].map(|row| &model[row * hidden..(row + 1) * hidden]).concat();
    tally.compare("last_token of three passes", gpu.as_bf16().unwrap(), &rows);
    tally.finish();
}

#[test]
fn rms_norm_is_its_recipe() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("rms_norm_is_its_recipe", &device);
    let mut bench = Bench::new(&device, 16);
    let eps = F32(0x3586_37bd); // 1e-6
    for width in [128, 132, 192, 256, 512, 1000, 2560, 4096, 5120] {
        for (kind, rows) in
            [("activations", 700), ("any bits", 300), ("specials", 300), ("wide", 100)]
        {
            let len = rows * width;
            let seed = width as u64;
            let x = match kind {
                "activations" => activations(seed, len),
                "any bits" => values(Family::AnyBits, seed, len),
                "specials" => with_specials(activations(seed, len), seed, 2 * width as u64),
                _ => values(Family::WideExponents, seed, len),
            };
            let weight_elements = match kind {
                "any bits" => values(Family::AnyBits, seed + 1, width),
                _ => values(Family::NearOne, seed + 1, width),
            };
            bench.engine.load_weight("weight", &[width], &weight_elements).unwrap();
            let recipe = Recipe::RowReduction { lanes: 32 };
            let op = Op::RmsNorm { eps, width };
            let norm = step(op, recipe, vec![value(), weight()], width);
            let buffer = bench.upload(rows, &x);
            let gpu = bench.execute(&norm, &[(0, rows)], &[&buffer]);
            let order = RowReduction::with_lanes(32).unwrap();
            let model = by_row(&x, width, |_, x, out| {
                rms_norm::rms_norm_row(order, x, &weight_elements, eps, out).unwrap();
            });
            let what = format!("rms_norm, width {width}, {kind}");
            tally.compare(what, gpu.as_bf16().unwrap(), &model);
        }
    }
    tally.finish();
}

#[test]
fn rope_is_its_recipe() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("rope_is_its_recipe", &device);
    let limit = 1 << 20;
    let mut bench = Bench::new(&device, limit);
    let heads = 3;
    for theta in [10_000, 1_000_000, 5_000_000] {
        let frequencies = InverseFrequencies::for_theta(theta, 128).unwrap();
        for (kind, start, rows) in [
            ("from 0", 0, 4096),
            ("to 40,960", 36_864, 4096),
            ("past the slow range of cosf", limit - 1024, 1024),
        ] {
            let x = with_specials(activations(theta, rows * heads * 128), theta, 1000);
            let rope = step(
                Op::Rope { theta, head_dim: 128 },
                Recipe::RopeBf16,
                vec![value()],
                heads * 128,
            );
            let buffer = bench.upload(rows, &x);
            let gpu = bench.execute(&rope, &[(start, rows)], &[&buffer]);
            let model = by_row(&x, heads * 128, |row, x, out| {
                let angles = frequencies.angles(start + row).unwrap();
                for (x, out) in x.chunks(128).zip(out.chunks_mut(128)) {
                    rope_row(&angles, x, out).unwrap();
                }
            });
            let what = format!("rope, theta {theta}, positions {kind}");
            tally.compare(what, gpu.as_bf16().unwrap(), &model);
        }
    }
    tally.finish();
}

#[test]
fn elementwise_is_its_recipe() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("elementwise_is_its_recipe", &device);
    let mut bench = Bench::new(&device, 16);
    let every: Vec<Bf16> = (0..=u16::MAX).map(Bf16).collect();
    let columns = every.len();
    let specials = SPECIAL.len();
    // Every pattern with every special pattern, in both places; then any bits.
    let all: Vec<Bf16> = every.repeat(specials);
    let special: Vec<Bf16> = SPECIAL.iter().flat_map(|&s| vec![Bf16(s); columns]).collect();
    let random = |seed| values(Family::AnyBits, seed, specials * columns);
    let near = |seed| activations(seed, specials * columns);
    let cases = [
        ("every bf16 x specials", all.clone(), special.clone()),
        ("specials x every bf16", special, all),
        ("any bits", random(21), random(22)),
        ("activations", near(23), near(24)),
    ];
    for (kind, a, b) in cases {
        let (first, second) = (bench.upload(specials, &a), bench.upload(specials, &b));
        for op in [Op::Add, Op::SiluMul] {
            let pair = step(op, Recipe::Elementwise, vec![value(), value()], columns);
            let gpu = bench.execute(&pair, &[(0, specials)], &[&first, &second]);
            let model = by_row(&a, columns, |row, a, out| {
                let b = &b[row * columns..(row + 1) * columns];
                if op == Op::Add {
                    elementwise::add_row(a, b, out).unwrap();
                } else {
                    elementwise::silu_mul_row(a, b, out).unwrap();
                }
            });
            tally.compare(format!("{op}, {kind}"), gpu.as_bf16().unwrap(), &model);
        }
    }
    tally.finish();
}

#[test]
fn argmax_is_its_recipe() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("argmax_is_its_recipe", &device);
    let mut bench = Bench::new(&device, 16);
    for (columns, rows) in [(1, 50), (3, 500), (255, 300), (256, 300), (257, 300), (151_936, 60)] {
        let len = rows * columns;
        let seed = columns as u64;
        // Sixteen values only: ties everywhere.
        let ties = (0..len as u64).map(|i| Bf16(SPECIAL[draw(seed, i) as usize % 12])).collect();
        let cases: [(&str, Vec<Bf16>); 5] = [
            ("activations", activations(seed, len)),
            ("any bits", values(Family::AnyBits, seed, len)),
            ("a few NaNs", with_specials(activations(seed, len), seed, 2 * seed + 1)),
            ("ties", ties),
            ("negative", activations(seed, len).iter().map(|x| Bf16(x.0 | 0x8000)).collect()),
        ];
        for (kind, x) in cases {
            let argmax = step(Op::Argmax, Recipe::LowestIndex, vec![value()], 1);
            let buffer = bench.upload(rows, &x);
            let gpu = bench.execute(&argmax, &[(0, rows)], &[&buffer]);
            let model: Vec<u32> =
                x.chunks(columns).map(|row| argmax::argmax_row(row).unwrap() as u32).collect();
            let what = format!("argmax of {columns}, {kind}");
            tally.compare(what, gpu.as_u32().unwrap(), &model);
        }
    }
    tally.finish();
}

/// Where the row's own tile begins, ends and is crossed.
const POSITIONS: [usize; 18] =
    [0, 1, 2, 7, 8, 15, 16, 31, 62, 63, 64, 65, 127, 128, 191, 200, 511, 1000];

#[test]
fn attention_is_its_recipe() {
    let Some(device) = device() else { return };
    let mut tally = Tally::new("attention_is_its_recipe", &device);
    let tokens = POSITIONS[POSITIONS.len() - 1] + 1;
    let profile = Profile::by_id("h200").unwrap();
    let profile = profile.mma("bf16").unwrap();
    let mut bench = Bench::new(&device, tokens);
    // Caches are never emptied, so every case has its own.
    let mut layer = 0;
    for (q_heads, kv_heads) in [(1, 1), (2, 1), (4, 2), (16, 1), (24, 2), (32, 8)] {
        for kind in ["activations", "large scores", "-inf scores", "specials", "any bits"] {
            layer += 1;
            let (key_slot, value_slot) =
                (CacheSlot { layer, half: Half::Key }, CacheSlot { layer, half: Half::Value });
            let seed = (q_heads * 100 + kv_heads) as u64;
            let kv_len = tokens * kv_heads * 128;
            let q_len = POSITIONS.len() * q_heads * 128;
            let draw_rows = |seed: u64, len: usize| match kind {
                "activations" => activations(seed, len),
                "large scores" => activations(seed, len)
                    .into_iter()
                    .map(|x| Bf16(if x.0 & 0x7fff == 0 { x.0 } else { x.0 + (6 << 7) }))
                    .collect(),
                // Products near the largest binary32: infinite scores of both signs.
                "-inf scores" => values(Family::NearOverflow, seed, len),
                "specials" => with_specials(activations(seed, len), seed, 5000),
                _ => values(Family::AnyBits, seed, len),
            };
            let q = draw_rows(seed, q_len);
            let keys = keep(&mut bench, key_slot, tokens, draw_rows(seed + 1, kv_len));
            let cache_values = match kind {
                "-inf scores" => activations(seed + 2, kv_len),
                _ => draw_rows(seed + 2, kv_len),
            };
            let cache_values = keep(&mut bench, value_slot, tokens, cache_values);

            let inputs = vec![value(), Operand::Cache(key_slot), Operand::Cache(value_slot)];
            let op = Op::Attention { q_heads, kv_heads, head_dim: 128 };
            let attention = step(op, Recipe::Flash2 { kv_tile: 64 }, inputs, q_heads * 128);
            let passes = POSITIONS.map(|position| (position, 1));
            let buffer = bench.upload(POSITIONS.len(), &q);
            let gpu = bench.execute(&attention, &passes, &[&buffer]);
            let model = by_row(&q, 128, |index, q, out| {
                let (row, head) = (index / q_heads, index % q_heads);
                let kv_head = head / (q_heads / kv_heads);
                let keys = HeadRows::new(&keys, kv_heads, kv_head, 128).unwrap();
                let values = HeadRows::new(&cache_values, kv_heads, kv_head, 128).unwrap();
                flash2_row(profile, q, keys, values, POSITIONS[row], out).unwrap();
            });
            let what = format!("attention, {q_heads} over {kv_heads} heads, {kind}");
            tally.compare(what, gpu.as_bf16().unwrap(), &model);
        }
    }
    tally.finish();
}

/// Stores rows in a cache, as the output of `x + −0`; returns what was stored
/// (`x`, but for NaN patterns).
fn keep(bench: &mut Bench, slot: CacheSlot, tokens: usize, x: Vec<Bf16>) -> Vec<Bf16> {
    let zeros = vec![Bf16(0x8000); x.len()];
    let mut add = step(Op::Add, Recipe::Elementwise, vec![value(), value()], x.len() / tokens);
    add.keeps = Some(slot);
    let (x, zeros) = (bench.upload(tokens, &x), bench.upload(tokens, &zeros));
    let stored = bench.execute(&add, &[(0, tokens)], &[&x, &zeros]);
    stored.as_bf16().unwrap().to_vec()
}
