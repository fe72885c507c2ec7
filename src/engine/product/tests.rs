//! The blocked product against the oracle, slice by slice.

use super::*;
use crate::isa::mma::{MmaProfile, Simd};
use crate::isa::profile::Profile;
use crate::recipe::split_k::split_k_workspace_f32;

/// A small reproducible generator (xorshift64*, Vigna 2016).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u16 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 48) as u16
    }

    /// A number between 2^-4 and 2^4 in magnitude.
    fn ordinary(&mut self) -> Bf16 {
        Bf16((self.bits() & 0x83ff) + (123 << 7))
    }

    fn some(&mut self, count: usize, element: fn(&mut Self) -> Bf16) -> Vec<Bf16> {
        (0..count).map(|_| element(self)).collect()
    }
}

/// Operands whose sums look different.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Data {
    Ordinary,
    /// Any finite bits: overflow, and far apart exponents.
    AnyFinite,
    /// Later halves of the rows of x are the negated first halves, nearly.
    Cancelling,
    /// An infinity or a NaN here and there.
    Specials,
}

const ALL: [Data; 4] = [Data::Ordinary, Data::AnyFinite, Data::Cancelling, Data::Specials];

impl Data {
    fn operands(self, (m, n, k): (usize, usize, usize)) -> (Vec<Bf16>, Vec<Bf16>) {
        let mut random = Random((m * 31 + n * 7 + k) as u64 | 1 << 40);
        match self {
            Self::Ordinary => {
                (random.some(m * k, Random::ordinary), random.some(n * k, Random::ordinary))
            }
            Self::AnyFinite => {
                let finite = |random: &mut Random| {
                    let code = random.bits();
                    Bf16(if code & 0x7f80 == 0x7f80 { code ^ 0x4000 } else { code })
                };
                (random.some(m * k, finite), random.some(n * k, finite))
            }
            Self::Cancelling => {
                let (mut x, mut weight) = Self::Ordinary.operands((m, n, k));
                for row in x.chunks_exact_mut(k).chain(weight.chunks_exact_mut(k)) {
                    row.copy_within(..k / 2, k / 2);
                }
                for (index, row) in x.chunks_exact_mut(k).enumerate() {
                    row[k / 2..].iter_mut().for_each(|x| x.0 ^= 0x8000);
                    // Every other row cancels to the last bit, the others do not quite.
                    row[k - 1].0 ^= (index % 2) as u16;
                }
                (x, weight)
            }
            Self::Specials => {
                let (mut x, mut weight) = Self::Ordinary.operands((m, n, k));
                for (index, special) in [0x7f80, 0xff80, 0x7f81, 0xffff].into_iter().enumerate() {
                    // Not in every row, and in different slices.
                    x[(index * 5 % m) * k + (97 * index + 3) % k] = Bf16(special);
                    weight[(index * 11 % n) * k + (131 * index + 60) % k] = Bf16(special);
                }
                (x, weight)
            }
        }
    }
}

fn profile(id: &str) -> MmaProfile {
    *Profile::by_id(id).unwrap().mma("bf16").unwrap()
}

fn oracle(mma: &MmaProfile, x: &[Bf16], weight: &[Bf16], slices: &Slices) -> Vec<Bf16> {
    split_k_workspace_f32(mma, x, weight, slices).into_iter().map(Bf16::round).collect()
}

fn fast(walk: &Walk, x: &[Bf16], weight: &[Bf16], slices: &Slices) -> Vec<Bf16> {
    let k = slices.k();
    // What was there before must not matter.
    let mut out = vec![Bf16(0x4242); x.len() / k * (weight.len() / k)];
    linear(walk, x, weight, slices, &mut out);
    out
}

/// One slice, and the numbers of slices that `k` admits.
fn splits(k: usize) -> Vec<Slices> {
    let split = [2, 3, 5].into_iter().filter_map(|count| Slices::split(k, count).ok());
    std::iter::once(Slices::whole(k)).chain(split).collect()
}

#[test]
fn every_form_gives_the_bits_of_the_oracle() {
    // (m, n, k): one panel and several, a last panel of 2 columns, uneven slices.
    for shape @ (m, n, k) in [(1, 130, 448), (3, 64, 640), (70, 33, 320), (1, 1, 128)] {
        for data in ALL {
            let (x, weight) = data.operands(shape);
            for id in ["h200", "a100"] {
                let mma = profile(id);
                for slices in splits(k) {
                    let expected = oracle(&mma, &x, &weight, &slices);
                    for simd in Simd::available() {
                        let found = fast(&Walk::new(&mma, simd), &x, &weight, &slices);
                        let (count, form) = (slices.ranges().len(), simd.name());
                        assert_eq!(found, expected, "{id} {m}x{n}x{k} {data:?} {count} {form}");
                    }
                }
            }
        }
    }
}

#[test]
fn rows_that_are_read_in_parts_give_the_bits_of_the_oracle() {
    let shape @ (m, n, k) = (ROWS + 9, 5, 192);
    let (x, weight) = Data::Ordinary.operands(shape);
    let mma = profile("h200");
    assert_eq!(readings(m), 2);
    for slices in splits(k) {
        let found = fast(&Walk::new(&mma, Simd::detect()), &x, &weight, &slices);
        let count = slices.ranges().len();
        assert_eq!(found, oracle(&mma, &x, &weight, &slices), "{m}x{n}x{k} {count}");
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let shape = (200, 150, 320);
    let (x, weight) = Data::Ordinary.operands(shape);
    let walk = Walk::new(&profile("h200"), Simd::detect());
    for slices in splits(shape.2) {
        let product = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| fast(&walk, &x, &weight, &slices))
        };
        let one = product(1);
        assert!([2, 3, 7].into_iter().all(|threads| product(threads) == one));
    }
}

/// The data tell orders apart: without this, a recipe that is not followed could pass.
#[test]
fn every_order_has_bits_of_its_own() {
    let shape @ (.., k) = (3, 64, 640);
    let (x, weight) = Data::Cancelling.operands(shape);
    let walk = Walk::new(&profile("h200"), Simd::detect());
    let splits = splits(k);
    let products: Vec<_> = splits.iter().map(|slices| fast(&walk, &x, &weight, slices)).collect();
    assert_eq!(products.len(), 4);
    for (index, product) in products.iter().enumerate() {
        assert!(!products[..index].contains(product), "{:?}", splits[index]);
    }
}
