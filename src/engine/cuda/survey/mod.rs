//! Surveys cuBLASLt: which algorithm each product of a model gets, and whether it
//! computes the recipe that it claims.
//!
//! The result is a catalogue's list of products ([`crate::recipe::catalog::listing`]).
//! An algorithm is listed only if everything compared was equal: outputs and binary32
//! accumulators with the emulator's, outputs with those of a second launch.

mod expected;
mod operands;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DeviceRepr};
use rayon::prelude::*;

use super::cublaslt::{Candidate, Library, Shape};
use super::environment::Device;
use super::fault::device_error;
use super::memory;
use crate::engine::EngineError;
use crate::num::{Bf16, F32};
use crate::recipe::Recipe;
use crate::recipe::catalog::listing::{self, Attributes, Compared, Run};
use crate::recipe::catalog::{Choice, Preference};
use crate::recipe::gemm::Walk;
use crate::recipe::split_k::Slices;

pub use operands::DESCRIPTION;

/// A weight whose products are surveyed.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Rows.
    pub n: usize,
    /// Length of the dot products.
    pub k: usize,
    /// What it is in the model.
    pub names: Vec<String>,
}

/// What came out for one weight.
#[derive(Clone, Debug)]
pub struct Surveyed {
    /// The list of products; algorithms that were refused are not in it.
    pub shape: listing::Shape,
    /// One sentence for each algorithm that was refused.
    pub refused: Vec<String>,
}

/// Asks and compares.
pub struct Survey {
    library: Library,
    stream: Arc<CudaStream>,
    walk: Walk,
    workspace_bytes: usize,
    max_m: usize,
}

/// One place where an algorithm is compared.
struct Place {
    m: usize,
    candidate: Candidate,
}

impl Survey {
    /// Opens the library on a GPU, to be asked for up to `max_m` rows.
    ///
    /// # Errors
    /// [`EngineError::Device`].
    pub fn new(
        device: &Device,
        walk: Walk,
        workspace_bytes: usize,
        max_m: usize,
    ) -> Result<Self, EngineError> {
        let library = Library::new(&device.stream, workspace_bytes)?;
        let stream = Arc::clone(&device.stream);
        Ok(Self { library, stream, walk, workspace_bytes, max_m })
    }

    /// What the library chooses for every number of rows: runs of equal attributes,
    /// with the algorithm at both ends of each.
    fn ask(&self, choice: Choice, n: usize, k: usize) -> Result<Vec<Asked>, EngineError> {
        let preference = Preference {
            reduction_scheme_mask: choice.reduction_scheme_mask(),
            workspace_bytes: self.workspace_bytes,
            candidates: 1,
        };
        let mut runs: Vec<Asked> = Vec::new();
        for m in 1..=self.max_m {
            let candidates = self.library.candidates(PHASE, Shape { m, n, k }, preference)?;
            let Some(candidate) = candidates.into_iter().next() else { continue };
            let attributes = Attributes::from(&candidate.descriptor);
            match runs.last_mut() {
                Some(run) if run.attributes == attributes && run.last.m + 1 == m => {
                    run.last = Place { m, candidate };
                }
                _ => runs.push(Asked {
                    attributes,
                    first: Place { m, candidate },
                    last: Place { m, candidate },
                }),
            }
        }
        Ok(runs)
    }

    /// Surveys the products of one weight.
    ///
    /// # Errors
    /// [`EngineError`] of the library or the device.
    pub fn weight(&mut self, weight: &Weight) -> Result<Surveyed, EngineError> {
        let (n, k) = (weight.n, weight.k);
        let mut bench = Bench::new(&self.stream, self.walk, self.max_m, n, k)?;
        let mut algorithms: Vec<(Attributes, Option<Recipe>, Compared)> = Vec::new();
        let mut chosen = HashMap::new();
        for choice in Choice::ALL {
            let runs = self.ask(choice, n, k)?;
            for run in &runs {
                let known = algorithms.iter().position(|(known, ..)| *known == run.attributes);
                let index = known.unwrap_or_else(|| {
                    let recipe = run.attributes.claimed_recipe(k as u64);
                    algorithms.push((run.attributes, recipe, Compared::default()));
                    algorithms.len() - 1
                });
                let (_, recipe, compared) = &mut algorithms[index];
                let Some(recipe) = *recipe else { continue };
                for place in [&run.first, &run.last] {
                    if !compared.m.contains(&(place.m as u64)) {
                        bench.compare(&mut self.library, place, recipe, compared)?;
                        compared.m.push(place.m as u64);
                    }
                }
            }
            chosen.insert(choice, runs);
        }
        Ok(list(weight, algorithms, &chosen))
    }
}

/// Numbers of rows that get an algorithm of these attributes.
struct Asked {
    attributes: Attributes,
    first: Place,
    last: Place,
}

/// Puts what was found into a catalogue's form.
fn list(
    weight: &Weight,
    algorithms: Vec<(Attributes, Option<Recipe>, Compared)>,
    chosen: &HashMap<Choice, Vec<Asked>>,
) -> Surveyed {
    let mut refused = Vec::new();
    let mut listed: Vec<listing::Algorithm> = Vec::new();
    for (attributes, recipe, mut compared) in algorithms {
        compared.m.sort_unstable();
        match recipe {
            Some(recipe) if compared.differing == 0 => {
                let recipe = recipe.to_string();
                listed.push(listing::Algorithm { attributes, recipe, compared });
            }
            Some(recipe) => refused.push(format!(
                "{attributes} for n={} k={}: {} of {} values differ from {recipe}",
                weight.n,
                weight.k,
                compared.differing,
                compared.outputs + compared.accumulators + compared.repeated
            )),
            None => refused.push(format!(
                "{attributes} for n={} k={}: no recipe is known",
                weight.n, weight.k
            )),
        }
    }
    let runs = |choice: Choice| -> Vec<Run> {
        let asked = chosen.get(&choice).into_iter().flatten();
        asked
            .filter_map(|run| {
                let index = listed.iter().position(|known| known.attributes == run.attributes)?;
                Some(Run(run.first.m as u64, run.last.m as u64, index))
            })
            .collect()
    };
    let (unsplit, stock) = (runs(Choice::Unsplit), runs(Choice::Stock));
    let shape = listing::Shape {
        n: weight.n as u64,
        k: weight.k as u64,
        weights: weight.names.clone(),
        algorithms: listed,
        unsplit,
        stock,
    };
    Surveyed { shape, refused }
}

/// Operands of one weight on the GPU, and what the emulator says of them.
struct Bench {
    stream: Arc<CudaStream>,
    walk: Walk,
    n: usize,
    k: usize,
    pool: Vec<Bf16>,
    weight: Vec<Bf16>,
    x: CudaSlice<Bf16>,
    on_device: CudaSlice<Bf16>,
    /// Raw sums of the pool's rows, by recipe.
    expected: HashMap<Recipe, Vec<F32>>,
}

impl Bench {
    fn new(
        stream: &Arc<CudaStream>,
        walk: Walk,
        max_m: usize,
        n: usize,
        k: usize,
    ) -> Result<Self, EngineError> {
        let pool = operands::activations(k);
        let rows = pool.chunks_exact(k).cycle().take(max_m);
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
    fn compare(
        &mut self,
        library: &mut Library,
        place: &Place,
        recipe: Recipe,
        compared: &mut Compared,
    ) -> Result<(), EngineError> {
        let (m, n, k) = (place.m, self.n, self.k);
        if !self.expected.contains_key(&recipe) {
            let slices = slices_of(recipe, k)?;
            let sums = expected::sums(&self.walk, &self.pool, &self.weight, k, slices.ranges());
            self.expected.insert(recipe, sums);
        }
        let sums = &self.expected[&recipe];
        let shape = Shape { m, n, k };
        let x = self.x.slice(0..m * k);
        let mut launch_bf16 = || -> Result<CudaSlice<Bf16>, EngineError> {
            library.multiply(PHASE, shape, &place.candidate, &x, &self.on_device)
        };
        let (first, again) = (launch_bf16()?, launch_bf16()?);
        let raw: CudaSlice<u32> =
            library.multiply(PHASE, shape, &place.candidate, &x, &self.on_device)?;
        for rows in compared_rows(m, n) {
            let range = rows.start * n..rows.end * n;
            let first: Vec<Bf16> = copy(&self.stream, &first, &range)?;
            let again: Vec<Bf16> = copy(&self.stream, &again, &range)?;
            let raw: Vec<u32> = copy(&self.stream, &raw, &range)?;
            let differing: usize = (0..rows.len())
                .into_par_iter()
                .map(|row| {
                    let pooled = (rows.start + row) % operands::POOL;
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

const PHASE: &str = "survey";
