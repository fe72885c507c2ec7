//! The same attention written as the GPU runs it: 16 query rows at once, tensor
//! core fragments spread over 32 threads, shuffles between threads of a quad.

use super::HeadRows;
use super::flash2::{Accumulated, accumulate, flash2_row};
use crate::isa::fp32::{fadd, fdiv, ffma, fmax, fmul, fsub};
use crate::isa::mma::{MmaProfile, Rounding, block_fma};
use crate::isa::mufu::ex2;
use crate::num::{Bf16, F32};
use crate::recipe::RecipeError;
use crate::recipe::gemm::walk_into;

const H200: MmaProfile = MmaProfile {
    n_fma: 16,
    neab: 2,
    min_alignment_exponent: -133,
    rounding: Rounding::TowardZeroF32,
};
const ROWS: usize = 16;
const DIM: usize = 128;
const SCALE_LOG2: F32 = F32(0x3e02_93ee);

/// Accumulator registers of one `m16n8` tile: per thread, rows `t/4` (registers 0, 1)
/// and `t/4 + 8` (registers 2, 3), columns `2·(t%4)` and the next (PTX ISA, m16n8k16).
type Accumulator = [[F32; 4]; 32];
/// The A operand of `m16n8k16`: eight elements per thread.
type FragmentA = [[Bf16; 8]; 32];

fn position_a(thread: usize, register: usize) -> (usize, usize) {
    let row = thread / 4 + if register / 2 % 2 == 1 { 8 } else { 0 };
    let k = 2 * (thread % 4) + register % 2 + if register >= 4 { 8 } else { 0 };
    (row, k)
}

/// `mma.sync.m16n8k16` on fragments; `b(k, n)` stands for the B operand.
fn mma(a: &FragmentA, b: impl Fn(usize, usize) -> Bf16, c: &mut Accumulator) {
    let mut rows = [[Bf16::ZERO; 16]; ROWS];
    for (thread, registers) in a.iter().enumerate() {
        for (register, &element) in registers.iter().enumerate() {
            let (row, k) = position_a(thread, register);
            rows[row][k] = element;
        }
    }
    for (thread, registers) in c.iter_mut().enumerate() {
        for (register, accumulator) in registers.iter_mut().enumerate() {
            let row = thread / 4 + if register >= 2 { 8 } else { 0 };
            let column = 2 * (thread % 4) + register % 2;
            let factors: [Bf16; 16] = std::array::from_fn(|k| b(k, column));
            *accumulator = block_fma(&H200, &rows[row], &factors, *accumulator);
        }
    }
}

/// All-reduce over a quad as FlashAttention does it: partners two apart, then one apart.
fn quad_reduce(x: [F32; 32], combine: fn(F32, F32) -> F32) -> [F32; 32] {
    [2, 1].into_iter().fold(x, |x, distance| {
        std::array::from_fn(|thread| combine(x[thread], x[thread ^ distance]))
    })
}

/// One warp: 16 query rows at one position; absent keys' values are zeroed by the caller.
fn warp_attention(
    q: &[Vec<Bf16>; ROWS],
    keys: &[Vec<Bf16>],
    values: &[Vec<Bf16>],
    position: usize,
) -> (Vec<Vec<Bf16>>, Vec<Accumulated>) {
    let mut output = [[[F32::ZERO; 4]; 32]; DIM / 8];
    // [half][thread]: half 0 is row t/4, half 1 row t/4 + 8.
    let mut row_max = [[F32::NEG_INFINITY; 32]; 2];
    let mut row_sum = [[F32::ZERO; 32]; 2];
    let tiles = position / 64 + 1;
    for (step, tile) in (0..tiles).rev().enumerate() {
        let mut scores = [[[F32::ZERO; 4]; 32]; 8];
        for k_block in 0..DIM / 16 {
            let a: FragmentA = std::array::from_fn(|thread| {
                std::array::from_fn(|register| {
                    let (row, k) = position_a(thread, register);
                    q[row][k_block * 16 + k]
                })
            });
            for (n_block, c) in scores.iter_mut().enumerate() {
                mma(&a, |k, n| keys[tile * 64 + n_block * 8 + n][k_block * 16 + k], c);
            }
        }
        for (n_block, c) in scores.iter_mut().enumerate() {
            for (thread, registers) in c.iter_mut().enumerate() {
                for (register, score) in registers.iter_mut().enumerate() {
                    let key = tile * 64 + n_block * 8 + 2 * (thread % 4) + register % 2;
                    if key > position {
                        *score = F32::NEG_INFINITY;
                    }
                }
            }
        }
        for half in 0..2 {
            let previous = row_max[half];
            let own: [F32; 32] = std::array::from_fn(|thread| {
                let mut max = previous[thread];
                for c in &scores {
                    max = fmax(max, c[thread][2 * half]);
                    max = fmax(max, c[thread][2 * half + 1]);
                }
                max
            });
            row_max[half] = quad_reduce(own, fmax);
            for thread in 0..32 {
                let max = row_max[half][thread];
                let current = if max == F32(0xff80_0000) { F32(0) } else { max };
                let scaled = fmul(current, SCALE_LOG2);
                let mut owned = Vec::new();
                for c in &mut scores {
                    for s in &mut c[thread][2 * half..2 * half + 2] {
                        *s = ex2(fsub(fmul(*s, SCALE_LOG2), scaled));
                        owned.push(*s);
                    }
                }
                let mut sum = owned[0];
                if step > 0 {
                    let rescale = ex2(fmul(fsub(previous[thread], current), SCALE_LOG2));
                    sum = ffma(row_sum[half][thread], rescale, owned[0]);
                    for c in &mut output {
                        for o in &mut c[thread][2 * half..2 * half + 2] {
                            *o = fmul(*o, rescale);
                        }
                    }
                }
                for &p in &owned[1..] {
                    sum = fadd(sum, p);
                }
                row_sum[half][thread] = sum;
            }
        }
        for k_block in 0..4 {
            // Two score accumulators side by side are, register for register, an A operand.
            let (left, right) = (&scores[2 * k_block], &scores[2 * k_block + 1]);
            let a: FragmentA = std::array::from_fn(|thread| {
                std::array::from_fn(|register| {
                    let source = if register < 4 { left } else { right };
                    Bf16::round(source[thread][register % 4])
                })
            });
            for (n_block, c) in output.iter_mut().enumerate() {
                mma(&a, |k, n| values[tile * 64 + k_block * 16 + k][n_block * 8 + n], c);
            }
        }
    }
    let mut out = vec![vec![Bf16::ZERO; DIM]; ROWS];
    let mut accumulated: Vec<Accumulated> = Vec::new();
    accumulated.resize_with(ROWS, || Accumulated { output: [F32::ZERO; DIM], total: F32::ZERO });
    for half in 0..2 {
        let totals = quad_reduce(row_sum[half], fadd);
        for (thread, &total) in totals.iter().enumerate() {
            let unusable = total.is_nan() || total.0 << 1 == 0;
            let inverse = if unusable { F32::ONE } else { fdiv(F32::ONE, total) };
            let row = thread / 4 + 8 * half;
            accumulated[row].total = total;
            for (n_block, c) in output.iter().enumerate() {
                for register in 0..2 {
                    let d = n_block * 8 + 2 * (thread % 4) + register;
                    let o = c[thread][2 * half + register];
                    accumulated[row].output[d] = o;
                    out[row][d] = Bf16::round(fmul(o, inverse));
                }
            }
        }
    }
    (out, accumulated)
}

struct Noise(u64);

impl Noise {
    fn bits(&mut self) -> u64 {
        // Knuth's MMIX constants.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A number with exponent field `base + 0…spread` and random sign and fraction.
    fn number(&mut self, base: u64, spread: u64) -> Bf16 {
        let (sign, fraction) = (self.bits() & 0x8000, self.bits() & 0x7f);
        Bf16((sign | (base + self.bits() % spread) << 7 | fraction) as u16)
    }

    fn rows(&mut self, count: usize, base: u64, spread: u64) -> Vec<Vec<Bf16>> {
        (0..count).map(|_| (0..DIM).map(|_| self.number(base, spread)).collect()).collect()
    }
}

struct Case {
    q: [Vec<Bf16>; ROWS],
    keys: Vec<Vec<Bf16>>,
    values: Vec<Vec<Bf16>>,
    position: usize,
}

impl Case {
    /// Values around one; `sharpness` raises the exponents of the keys.
    fn noise(position: usize, sharpness: u64, seed: u64) -> Self {
        let mut noise = Noise(seed);
        let tokens = (position / 64 + 1) * 64;
        let q = noise.rows(ROWS, 123, 6).try_into().unwrap();
        let keys = noise.rows(tokens, 121 + sharpness, 5);
        let values = noise.rows(tokens, 120, 9);
        Self { q, keys, values, position }
    }

    /// The caches of head 1 of 3; its neighbours hold NaN, so a wrong stride shows.
    fn caches(&self) -> [Vec<Bf16>; 2] {
        let other = vec![Bf16(0x7fc0); DIM];
        [&self.keys, &self.values].map(|rows| {
            rows.iter().flat_map(|row| [&other, row, &other]).flatten().copied().collect()
        })
    }

    fn flash2(&self) -> (Vec<Vec<Bf16>>, Vec<Accumulated>) {
        let [keys, values] = self.caches();
        let keys = HeadRows::new(&keys, 3, 1, DIM).unwrap();
        let values = HeadRows::new(&values, 3, 1, DIM).unwrap();
        let product = |a: &[Bf16], b: &[Bf16], k, out: &mut [F32]| walk_into(&H200, a, b, k, out);
        let row = |q: &Vec<Bf16>| {
            let mut out = vec![Bf16::ZERO; DIM];
            flash2_row(&H200, q, keys, values, self.position, &mut out).unwrap();
            (out, accumulate(product, q, keys, values, self.position))
        };
        self.q.iter().map(row).unzip()
    }

    fn rows(&self) -> Vec<Vec<Bf16>> {
        self.flash2().0
    }

    fn warp(&self) -> (Vec<Vec<Bf16>>, Vec<Accumulated>) {
        let mut values = self.values.clone();
        for row in &mut values[self.position + 1..] {
            row.fill(Bf16::ZERO);
        }
        warp_attention(&self.q, &self.keys, &values, self.position)
    }
}

#[test]
fn a_row_is_what_a_warp_of_tensor_core_fragments_gives() {
    for position in [0, 1, 15, 16, 31, 63, 64, 65, 127, 200] {
        for sharpness in [0, 3, 6] {
            let case = Case::noise(position, sharpness, position as u64 * 7 + sharpness);
            assert_eq!(case.flash2(), case.warp(), "position {position}, sharpness {sharpness}");
        }
    }
}

#[test]
fn special_values_are_what_a_warp_gives() {
    // (token, key words, value words, reason): the first words of a token's rows are replaced.
    let cases: [(usize, &[u16], &[u16], &str); 12] = [
        (70, &[0x7f80], &[], "an infinite key: the score is infinite or NaN"),
        (3, &[0x7f80], &[], "the same in the last tile walked"),
        (70, &[0x7fc0], &[], "a NaN key in the query's own tile"),
        (3, &[0xffc1], &[], "a NaN key in the last tile walked"),
        (70, &[], &[0x7f80, 0xff80, 0x7fc0], "values that are not finite"),
        (3, &[], &[0x7f80, 0xff80, 0x7fc0], "the same in the last tile walked"),
        (70, &[0x7f7f, 0x7f7f], &[], "huge scores: one key takes all, or none"),
        (70, &[0x7f7f, 0xff7f, 0x7f7f], &[], "huge products that cancel or overflow"),
        (64, &[], &[0x8000, 0x0001, 0x8001, 0x7f7f, 0xff7f], "zeros, subnormals, largest values"),
        (66, &[0x8000, 0x0001, 0x007f], &[], "zeros and subnormals in a key"),
        (71, &[0x7f80], &[0x7f80], "an absent key and value that are infinite"),
        (100, &[0x7fc0], &[0x7fc0], "an absent key and value that are NaN"),
    ];
    for (token, key, value, reason) in cases {
        let mut case = Case::noise(70, 0, token as u64);
        for (element, &word) in case.keys[token].iter_mut().zip(key) {
            *element = Bf16(word);
        }
        for (element, &word) in case.values[token].iter_mut().zip(value) {
            *element = Bf16(word);
        }
        assert_eq!(case.flash2(), case.warp(), "{reason}");
    }
}

#[test]
fn scores_of_minus_infinity_leave_zero_or_the_other_tile() {
    // q = (1, 0, …): a key that starts with −inf has the score −inf.
    let mut case = Case::noise(70, 0, 5);
    for q in &mut case.q {
        q.fill(Bf16::ZERO);
        q[0] = Bf16(0x3f80);
    }
    for key in &mut case.keys {
        key[0] = Bf16(0xff80);
        key[1..].fill(Bf16::ZERO);
    }
    assert_eq!(case.flash2(), case.warp());
    assert!(case.rows().concat().iter().all(|x| *x == Bf16::ZERO), "no key at all");
    // From tile 0 alone: the maximum of the first tile walked stays −inf.
    for key in &mut case.keys[..64] {
        key[0] = Bf16::ZERO;
    }
    assert_eq!(case.flash2(), case.warp());
    assert!(case.rows().concat().iter().any(|x| *x != Bf16::ZERO), "64 keys of equal weight");
}

#[test]
fn one_key_gives_its_value_back() {
    let case = Case::noise(0, 2, 1);
    for row in case.rows() {
        assert_eq!(row, case.values[0]);
    }
}

#[test]
fn equal_keys_give_the_mean() {
    // 100 equal scores: p = 1, total = 100; values alternate 1 and 3.
    let mut case = Case::noise(99, 0, 2);
    let key = case.keys[0].clone();
    case.keys.fill(key);
    for (token, value) in case.values.iter_mut().enumerate() {
        value.fill(Bf16(if token % 2 == 0 { 0x3f80 } else { 0x4040 }));
    }
    assert_eq!(case.rows().concat(), vec![Bf16(0x4000); ROWS * DIM]);
}

#[test]
fn later_tokens_do_not_matter() {
    let mut case = Case::noise(66, 0, 3);
    let alone = case.rows();
    for token in 67..128 {
        case.keys[token].fill(Bf16(0x7fc0));
        case.values[token].fill(Bf16(0x7f80));
    }
    assert_eq!(case.rows(), alone);
    case.keys.truncate(67);
    case.values.truncate(67);
    assert_eq!(case.rows(), alone);
}

#[test]
fn refuses_what_is_not_there() {
    let rows = vec![Bf16::ZERO; 2 * 3 * DIM];
    let head = HeadRows::new(&rows, 3, 2, DIM).unwrap();
    assert_eq!(head.tokens(), 2);
    assert!(HeadRows::new(&rows, 3, 3, DIM).is_err(), "head 3 of 3");
    assert!(HeadRows::new(&rows[1..], 3, 0, DIM).is_err(), "a broken token");
    assert!(HeadRows::new(&rows, 0, 0, DIM).is_err(), "no heads");
    let mut out = vec![Bf16::ZERO; DIM];
    let q = &rows[..DIM];
    assert_eq!(flash2_row(&H200, q, head, head, 1, &mut out), Ok(()));
    let late = flash2_row(&H200, q, head, head, 2, &mut out);
    assert_eq!(late, Err(RecipeError::Position { op: "attention", position: 2, limit: 2 }));
    assert!(flash2_row(&H200, &q[1..], head, head, 1, &mut out).is_err());
    let narrow = HeadRows::new(&rows, 6, 0, 64).unwrap();
    let refused = flash2_row(&H200, q, narrow, narrow, 1, &mut out);
    assert_eq!(refused, Err(RecipeError::HeadDim { op: "attention", head_dim: 64 }));
}
