//! PyTorch's row reduction: the order in which a row is summed.
//!
//! One lane of the GPU loads 4 neighbours at a time into 4 accumulators; the
//! lanes of a row are then halved onto each other. The number of lanes is the
//! whole recipe: PyTorch derives it from the launch, the `native` stack fixes it.
//! Launches that share a row among the block's second dimension, or among blocks,
//! are refused.

use super::RecipeError;
use crate::isa::fp32::fadd;
use crate::num::F32;

/// The summation order of one row: so many lanes, vectors of 4.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RowReduction {
    lanes: usize,
}

impl RowReduction {
    /// The order of the `native` stack: 32 lanes whatever the launch, so a row's
    /// sum does not depend on the rows beside it.
    pub fn native() -> Self {
        Self { lanes: WARP }
    }

    /// The order with this many lanes, as a plan's step names it.
    ///
    /// # Errors
    /// [`RecipeError::ReductionLanes`] unless `lanes` is a power of two from 32 to 512.
    pub fn with_lanes(lanes: usize) -> Result<Self, RecipeError> {
        if lanes.is_power_of_two() && (WARP..=MAX_THREADS).contains(&lanes) {
            Ok(Self { lanes })
        } else {
            Err(RecipeError::ReductionLanes { lanes })
        }
    }

    /// The order PyTorch uses for a launch of `rows` contiguous rows of `n`.
    ///
    /// # Errors
    /// [`RecipeError::ReductionLength`] if the row takes the unvectorised path;
    /// [`RecipeError::ReductionLaunch`] if one row is shared among the block's
    /// rows or among blocks.
    ///
    /// # Source
    /// PyTorch, `aten/src/ATen/native/cuda/Reduce.cuh` (block dimensions, and the
    /// thresholds 16 and 256 values per thread); lane counts compared with
    /// PyTorch 2.11 on an H200 for 13 row counts and 5 lengths (`spec/ops.md`).
    pub fn for_launch(rows: usize, n: usize) -> Result<Self, RecipeError> {
        check_length(n)?;
        let refused = |shared_among| RecipeError::ReductionLaunch { rows, n, shared_among };
        if rows == 0 {
            return Err(refused("no rows"));
        }
        // Past 2^31 - 1 bytes PyTorch cuts the launch into several, each with its own lanes.
        if rows.checked_mul(n).is_none_or(|count| count > MAX_LAUNCH_ELEMENTS) {
            return Err(refused("several launches"));
        }
        let width = floor_power_of_two(n / VECTOR).min(MAX_THREADS);
        let height = floor_power_of_two(rows).min(MAX_THREADS / width.min(WARP));
        let lanes = width.min(MAX_THREADS / height);
        let values_per_thread = n.div_ceil(lanes);
        if height > 1 && values_per_thread >= (height * 16).min(256) {
            return Err(refused("the block's rows"));
        }
        if values_per_thread >= 256 {
            return Err(refused("blocks"));
        }
        Ok(Self { lanes })
    }

    /// True if rows of `n` elements take the measured, vectorised path.
    pub fn covers(n: usize) -> bool {
        n >= MIN_LENGTH && n.is_multiple_of(VECTOR)
    }

    /// Lanes that share one row (count).
    pub fn lanes(self) -> usize {
        self.lanes
    }

    /// Returns the sum of `x` in this order.
    ///
    /// # Rounding
    /// S1, S2: lane `l` adds elements `(i·lanes + l)·4 + v` to its accumulator `v`,
    /// in order of `i`, from `+0`.
    /// S3: a lane's accumulators are added left to right.
    /// S4: the upper half of the lanes is added onto the lower half until one is left.
    ///
    /// # Errors
    /// [`RecipeError::ReductionLength`] if `x` is shorter than 128 or no multiple of 4.
    ///
    /// # Source
    /// `spec/ops.md`, row reduction.
    pub fn sum(self, x: &[F32]) -> Result<F32, RecipeError> {
        self.sum_of(x, |x| x)
    }

    /// Returns the [`sum`](Self::sum) of `term(x)` over the elements of `x`.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    #[inline]
    pub fn sum_of<T: Copy>(self, x: &[T], term: impl Fn(T) -> F32) -> Result<F32, RecipeError> {
        check_length(x.len())?;
        // A row's accumulators in an array of their own number: short rows are many.
        Ok(match self.lanes {
            32 => sum_of::<T, { 32 * VECTOR }>(x, term),
            64 => sum_of::<T, { 64 * VECTOR }>(x, term),
            128 => sum_of::<T, { 128 * VECTOR }>(x, term),
            256 => sum_of::<T, { 256 * VECTOR }>(x, term),
            _ => sum_of::<T, { MAX_THREADS * VECTOR }>(x, term),
        })
    }
}

/// The sum with `N / 4` lanes. Accumulator `v` of lane `l` is at `4l + v`, so that a
/// round of loads is a loop over neighbours.
#[inline]
fn sum_of<T: Copy, const N: usize>(x: &[T], term: impl Fn(T) -> F32) -> F32 {
    let mut accumulators = [F32::ZERO; N]; // S1
    for round in x.chunks(N) {
        for (accumulator, &x) in accumulators.iter_mut().zip(round) {
            *accumulator = fadd(*accumulator, term(x)); // S2
        }
    }
    for lane in 0..N / VECTOR {
        let [a, b, c, d] = std::array::from_fn(|v| accumulators[lane * VECTOR + v]);
        accumulators[lane] = fadd(fadd(fadd(a, b), c), d); // S3
    }
    let mut lanes = N / VECTOR;
    while lanes > 1 {
        lanes /= 2;
        let (low, high) = accumulators.split_at_mut(lanes);
        for (low, &high) in low.iter_mut().zip(high.iter()) {
            *low = fadd(*low, high); // S4
        }
    }
    accumulators[0]
}

fn check_length(n: usize) -> Result<(), RecipeError> {
    if RowReduction::covers(n) { Ok(()) } else { Err(RecipeError::ReductionLength { n }) }
}

fn floor_power_of_two(x: usize) -> usize {
    1 << x.ilog2()
}

/// Threads of a warp.
const WARP: usize = 32;
/// Elements of one load: four binary32 are 16 bytes.
const VECTOR: usize = 4;
/// Threads of a block at most (`ReduceConfig`, 4-byte elements).
const MAX_THREADS: usize = 512;
/// Shortest row that is loaded in vectors.
const MIN_LENGTH: usize = 128;
/// Elements of a launch at most, so that byte offsets fit 31 bits.
const MAX_LAUNCH_ELEMENTS: usize = (i32::MAX / 4) as usize;

#[cfg(test)]
mod tests {
    use super::*;

    /// The GPU block, thread by thread: every thread walks its own addresses, the
    /// block halves through shared memory down to a warp, then the warp shuffles,
    /// in which a lane without a partner receives its own value.
    fn simulate_block(lanes: usize, x: &[F32]) -> F32 {
        let thread = |lane: usize| {
            let mut a = [F32::ZERO; 4];
            let mut address = lane * 4;
            while address + 3 < x.len() {
                for v in 0..4 {
                    a[v] = fadd(a[v], x[address + v]);
                }
                address += lanes * 4;
            }
            let mut total = a[0];
            for other in &a[1..] {
                total = fadd(total, *other);
            }
            total
        };
        let mut shared: Vec<F32> = (0..lanes).map(thread).collect();
        let mut offset = lanes / 2;
        while offset >= 32 {
            let before = shared.clone();
            for lane in 0..offset {
                shared[lane] = fadd(before[lane], before[lane + offset]);
            }
            offset /= 2;
        }
        let mut warp: Vec<F32> = shared[..32].to_vec();
        for delta in [16, 8, 4, 2, 1] {
            warp = (0..32)
                .map(|lane| {
                    let partner = if lane + delta < 32 { lane + delta } else { lane };
                    fadd(warp[lane], warp[partner])
                })
                .collect();
        }
        warp[0]
    }

    fn noise(n: usize, seed: u32) -> Vec<F32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        (0..n)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Signs, 24 binades around one, random fractions.
                F32((state & 0x8000_0000)
                    | (115 + (state >> 8) % 24) << 23
                    | (state >> 3 & 0x7f_ffff))
            })
            .collect()
    }

    #[test]
    fn lanes_follow_the_launch_rule() {
        // (rows, n, lanes, reason)
        let cases = [
            (1, 2560, 512, "one row takes the whole block"),
            (2, 2560, 256, "two rows share it"),
            (3, 2560, 256, "rows round down to a power of two"),
            (4, 2560, 128, ""),
            (7, 2560, 128, ""),
            (8, 2560, 64, ""),
            (15, 2560, 64, ""),
            (16, 2560, 32, "from 16 rows on a warp a row"),
            (40, 2560, 32, ""),
            (100_000, 2560, 32, ""),
            (1, 128, 32, "128 elements are 32 vectors"),
            (1000, 128, 32, ""),
            (1, 256, 64, ""),
            (8, 256, 64, "512 / 8 rows leave 64 lanes"),
            (9, 256, 64, ""),
            (16, 256, 32, ""),
            (1, 4096, 512, ""),
            (17, 5120, 32, ""),
            (1, 5120, 512, ""),
            (1, 192, 32, "48 vectors round down to 32 lanes"),
            (1, 130_560, 512, "255 values a thread stay in one block"),
        ];
        for (rows, n, lanes, reason) in cases {
            assert_eq!(
                RowReduction::for_launch(rows, n).map(RowReduction::lanes),
                Ok(lanes),
                "{rows} x {n} {reason}"
            );
        }
    }

    #[test]
    fn refuses_launches_of_other_code_paths() {
        let refused = [
            (1, 127, "shorter than 128"),
            (1, 130, "no multiple of 4"),
            (0, 128, "no rows"),
            (2, 8192, "32 values a thread on 2 block rows"),
            (16, 8192, "256 values a thread"),
            (1, 130_564, "more than 255 values a thread: several blocks"),
            (1 << 20, 2560, "more bytes than 31 bits address"),
        ];
        for (rows, n, reason) in refused {
            assert!(RowReduction::for_launch(rows, n).is_err(), "{reason}");
        }
        for lanes in [0, 16, 48, 1024] {
            assert_eq!(RowReduction::with_lanes(lanes), Err(RecipeError::ReductionLanes { lanes }));
        }
        assert_eq!(RowReduction::with_lanes(32), Ok(RowReduction::native()));
        assert_eq!(
            RowReduction::native().sum(&[F32::ZERO; 126]),
            Err(RecipeError::ReductionLength { n: 126 })
        );
    }

    #[test]
    fn sum_is_the_block_simulated_thread_by_thread() {
        for lanes in [32, 64, 128, 256, 512] {
            for n in [128, 132, 192, 256, 2560, 4096, 5120, 5124] {
                for seed in 0..20 {
                    let x = noise(n, seed);
                    let order = RowReduction { lanes };
                    assert_eq!(order.sum(&x), Ok(simulate_block(lanes, &x)), "{lanes} lanes, {n}");
                }
            }
        }
    }

    #[test]
    fn lane_counts_differ_in_their_bits() {
        let x = noise(2560, 7);
        let sums: Vec<_> = [32, 64, 128, 256, 512]
            .map(|lanes| RowReduction { lanes }.sum(&x))
            .into_iter()
            .collect();
        assert!(sums.windows(2).any(|pair| pair[0] != pair[1]), "the order must be visible");
    }

    #[test]
    fn ones_sum_to_their_count() {
        let ones = vec![F32::ONE; 128];
        assert_eq!(RowReduction::native().sum(&ones), Ok(F32(0x4300_0000))); // 128
    }
}
