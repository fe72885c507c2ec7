//! What this machine does in about a second: for an estimate before long work.
//!
//! Unlike the measurements beside it this one compares nothing with an oracle and
//! is repeated nowhere: it is shown as an estimate and used for nothing else.

use std::time::{Duration, Instant};

use super::operands::{activations, weights};
use crate::engine::product::linear;
use crate::isa::mma::{MmaProfile, Simd};
use crate::num::{Bf16, sha256};
use crate::recipe::gemm::Walk;
use crate::recipe::split_k::Slices;

/// Rates as amounts and the times they took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calibration {
    /// Threads of the products.
    pub threads: usize,
    /// Multiply-adds of products on all threads.
    pub multiply_adds: u64,
    /// Their time (nanoseconds).
    pub product_nanos: u64,
    /// Bytes hashed on one thread.
    pub hashed_bytes: u64,
    /// Their time (nanoseconds).
    pub hash_nanos: u64,
}

impl Calibration {
    /// Nanoseconds for so many multiply-adds and bytes to hash, if no thread ever
    /// waits for another or for the disk.
    pub fn nanos(&self, multiply_adds: u64, hashed_bytes: u64) -> u64 {
        let part = |amount: u64, nanos: u64, of: u64| {
            u128::from(amount) * u128::from(nanos) / u128::from(of.max(1))
        };
        let products = part(multiply_adds, self.product_nanos, self.multiply_adds);
        let hashing = part(hashed_bytes, self.hash_nanos, self.hashed_bytes);
        let all = products + hashing / self.threads.max(1) as u128;
        u64::try_from(all).unwrap_or(u64::MAX)
    }
}

/// Times products of `m` rows of length `k` for about a second on all threads, and
/// SHA-256 for a tenth of one on one.
pub fn calibrate(profile: &MmaProfile, simd: Simd, m: usize, k: usize) -> Calibration {
    let (m, k) = (m.max(1), k.max(1));
    let threads = rayon::current_num_threads();
    let n = COLUMNS * PANELS_A_THREAD * threads;
    let (a, b) = (activations(1, m, k), weights(2, n, k));
    let (walk, slices) = (Walk::new(profile, simd), Slices::whole(k));
    let mut out = vec![Bf16::ZERO; m * n];
    let mut product = || {
        linear(&walk, &a, &b, &slices, &mut out);
        std::hint::black_box(&out);
    };
    product(); // threads are started and caches filled
    let (products, product_nanos) = repeat(PRODUCTS, product);
    let bytes = vec![0x5a; HASHED];
    let (hashes, hash_nanos) = repeat(HASHES, || {
        std::hint::black_box(sha256(&[&bytes]));
    });
    Calibration {
        threads,
        multiply_adds: products * (m * n) as u64 * k as u64,
        product_nanos,
        hashed_bytes: hashes * HASHED as u64,
        hash_nanos,
    }
}

/// How often something was done, and how long that took.
fn repeat(duration: Duration, mut work: impl FnMut()) -> (u64, u64) {
    let begun = Instant::now();
    let mut count = 0;
    loop {
        work();
        count += 1;
        let elapsed = begun.elapsed();
        if elapsed >= duration {
            return (count, u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
        }
    }
}

/// Columns of one task, as the emulator divides a product.
const COLUMNS: usize = 64;
const PANELS_A_THREAD: usize = 4;
const HASHED: usize = 1 << 20;
const PRODUCTS: Duration = Duration::from_secs(1);
const HASHES: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_work_over_rate_and_hashing_is_shared() {
        let rates = Calibration {
            threads: 2,
            multiply_adds: 30_000_000_000,
            product_nanos: 1_000_000_000,
            hashed_bytes: 2_000_000_000,
            hash_nanos: 1_000_000_000,
        };
        assert_eq!(rates.nanos(0, 0), 0);
        assert_eq!(rates.nanos(1_000_000_000_000, 0), 33_333_333_333);
        assert_eq!(rates.nanos(0, 8_000_000_000), 2_000_000_000, "two threads");
        assert_eq!(
            rates.nanos(30_000_000_000, 4_000_000_000),
            2_000_000_000,
            "one after the other"
        );
        assert_eq!(rates.nanos(u64::MAX, u64::MAX), u64::MAX / 30 + u64::MAX / 4, "no overflow");
    }
}
