//! One weight's products, computed by the library and by the emulator.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DeviceRepr};
use rayon::prelude::*;

use super::{PHASE, Place, operands};
use crate::engine::cuda::cublaslt::{Library, Shape};
use crate::engine::cuda::fault::device_error;
use crate::engine::cuda::memory;
use crate::engine::{EngineError, product};
use crate::num::{Bf16, F32};
use crate::recipe::Recipe;
use crate::recipe::catalog::listing::Compared;
use crate::recipe::gemm::Walk;
use crate::recipe::split_k::Slices;

/// Operands of one weight on the GPU, and what the emulator says of them.
pub(super) struct Bench {
    stream: Arc<CudaStream>,
    walk: Walk,
    n: usize,
    pub(super) k: usize,
    pool: Vec<Bf16>,
    weight: Vec<Bf16>,
    x: CudaSlice<Bf16>,
    on_device: CudaSlice<Bf16>,
    /// Raw sums of the pool's rows, by recipe.
    expected: HashMap<Recipe, Vec<F32>>,
}

impl Bench {
    pub(super) fn new(
        stream: &Arc<CudaStream>,
        walk: Walk,
        max_m: usize,
        n: usize,
        k: usize,
    ) -> Result<Self, EngineError> {
        let pool = operands::activations(k);
        let rows = pool.chunks_exact(k).cycle().take(max_m + operands::FAMILIES);
        let x: Vec<Bf16> = rows.flatten().copied().collect();
        let weight: Vec<Bf16> =
            (0..n).into_par_iter().flat_map_iter(|row| operands::weight_row(row, k)).collect();
        Ok(Self {
            x: memory::upload(stream, PHASE, &x)?,
            on_device: memory::upload(stream, PHASE, &weight)?,
            stream: Arc::clone(stream),
            walk,
            n,
            k,
            pool,
            weight,
            expected: HashMap::new(),
        })
    }

    /// Launches an algorithm and adds to what was compared of it.
    pub(super) fn compare(
        &mut self,
        library: &mut Library,
        place: &Place,
        recipe: Recipe,
        compared: &mut Compared,
    ) -> Result<(), EngineError> {
        let (m, n, k) = (place.m, self.n, self.k);
        if !self.expected.contains_key(&recipe) {
            let slices = slices_of(recipe, k)?;
            let mut sums = vec![F32::ZERO; operands::POOL * n];
            product::sums(&self.walk, &self.pool, &self.weight, &slices, &mut sums);
            self.expected.insert(recipe, sums);
        }
        let sums = &self.expected[&recipe];
        let shape = Shape { m, n, k };
        // Few rows begin at each family in turn, so that they meet all of them.
        let starts = if m < operands::FAMILIES { operands::FAMILIES } else { 1 };
        for start in 0..starts {
            let x = self.x.slice(start * k..(start + m) * k);
            let mut launch = || -> Result<CudaSlice<Bf16>, EngineError> {
                library.multiply(PHASE, shape, &place.candidate, &x, &self.on_device)
            };
            let (first, again) = (launch()?, launch()?);
            let raw: CudaSlice<u32> =
                library.multiply(PHASE, shape, &place.candidate, &x, &self.on_device)?;
            let results = Results { first, again, raw };
            results.compare(&self.stream, sums, (start, m, n), compared)?;
        }
        Ok(())
    }
}

/// Results of one product: bf16, bf16 again, and the bits of binary32.
struct Results {
    first: CudaSlice<Bf16>,
    again: CudaSlice<Bf16>,
    raw: CudaSlice<u32>,
}

impl Results {
    /// Compares with the pool's sums; row 0 is row `start` of the pool.
    fn compare(
        &self,
        stream: &Arc<CudaStream>,
        sums: &[F32],
        (start, m, n): (usize, usize, usize),
        compared: &mut Compared,
    ) -> Result<(), EngineError> {
        for rows in compared_rows(m, n) {
            let range = rows.start * n..rows.end * n;
            let first: Vec<Bf16> = copy(stream, &self.first, &range)?;
            let again: Vec<Bf16> = copy(stream, &self.again, &range)?;
            let raw: Vec<u32> = copy(stream, &self.raw, &range)?;
            let differing: usize = (0..rows.len())
                .into_par_iter()
                .map(|row| {
                    let pooled = (start + rows.start + row) % operands::POOL;
                    let expected = &sums[pooled * n..(pooled + 1) * n];
                    let own = row * n..(row + 1) * n;
                    let columns = expected.iter().zip(&first[own.clone()]);
                    let others = again[own.clone()].iter().zip(&raw[own]);
                    columns
                        .zip(others)
                        .map(|((&sum, &first), (&again, &raw))| {
                            usize::from(first != Bf16::round(sum))
                                + usize::from(again != first)
                                + usize::from(raw != sum.0)
                        })
                        .sum::<usize>()
                })
                .sum();
            let count = range.len() as u64;
            compared.outputs += count;
            compared.accumulators += count;
            compared.repeated += count;
            compared.differing += differing as u64;
        }
        Ok(())
    }
}

/// Rows of a product that are brought back: all of a few, else both ends.
fn compared_rows(m: usize, n: usize) -> Vec<Range<usize>> {
    // 32 rows of the widest products are 39 MB a launch.
    let ends = if n > 1 << 15 { 16 } else { 64 };
    let first = m.min(ends);
    let last = first.max(m.saturating_sub(ends));
    [0..first, last..m].into_iter().filter(|rows| !rows.is_empty()).collect()
}

fn slices_of(recipe: Recipe, k: usize) -> Result<Slices, EngineError> {
    let refused = |reason: String| EngineError::Refused { step: PHASE.into(), reason };
    let slices = Slices::of(recipe, k).map_err(|error| refused(error.to_string()))?;
    slices.ok_or_else(|| refused(format!("{recipe} is no recipe of a product")))
}

fn copy<T: DeviceRepr>(
    stream: &Arc<CudaStream>,
    from: &CudaSlice<T>,
    range: &Range<usize>,
) -> Result<Vec<T>, EngineError> {
    let view = from.slice(range.clone());
    let host = stream.clone_dtoh(&view).map_err(device_error(PHASE, "cuMemcpyDtoH"))?;
    stream.synchronize().map_err(device_error(PHASE, "cuStreamSynchronize"))?;
    Ok(host)
}
