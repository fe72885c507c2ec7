//! Surveys cuBLASLt: which algorithm each product of a model gets, and whether it
//! computes the recipe that it claims.
//!
//! The result is a catalogue's list of products ([`crate::recipe::catalog::listing`]).
//! An algorithm is listed only if everything compared was equal: outputs and binary32
//! accumulators with the emulator's, outputs with those of a second launch.

mod bench;
mod operands;

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::CudaStream;

use super::cublaslt::{Candidate, Library, Shape};
use super::environment::Device;
use crate::engine::EngineError;
use crate::recipe::Recipe;
use crate::recipe::catalog::listing::{self, Compared, Run};
use crate::recipe::catalog::{Choice, Preference};
use crate::recipe::cublaslt::Attributes;
use crate::recipe::gemm::Walk;

use bench::Bench;
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

    /// What the library chooses for every number of rows, but for algorithms that were
    /// refused: runs of equal attributes, with the algorithm at both ends of each.
    fn ask(
        &self,
        choice: Choice,
        (n, k): (usize, usize),
        refused: &[Attributes],
    ) -> Result<Vec<Asked>, EngineError> {
        let preference = Preference {
            reduction_scheme_mask: choice.reduction_scheme_mask(),
            workspace_bytes: self.workspace_bytes,
            candidates: if refused.is_empty() { 1 } else { choice.candidates() },
        };
        let mut runs: Vec<Asked> = Vec::new();
        for m in 1..=self.max_m {
            let candidates = self.library.candidates(PHASE, Shape { m, n, k }, preference)?;
            let of = |candidate: &Candidate| candidate.descriptor.attributes;
            let mut candidates = candidates.into_iter();
            let first = candidates.find(|candidate| !refused.contains(&of(candidate)));
            let Some(candidate) = first else { continue };
            let attributes = of(&candidate);
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
            let mut refused: Vec<Attributes> = Vec::new();
            let runs = loop {
                let runs = self.ask(choice, (n, k), &refused)?;
                self.compare(&mut bench, &runs, &mut algorithms)?;
                let listed = |run: &Asked| {
                    let same = |(known, recipe, compared): &&(_, Option<Recipe>, Compared)| {
                        *known == run.attributes && recipe.is_some() && compared.differing == 0
                    };
                    algorithms.iter().any(|algorithm| same(&algorithm))
                };
                let more: Vec<_> =
                    runs.iter().filter(|run| !listed(run)).map(|run| run.attributes).collect();
                // Where the library's own choice is asked for, there is no second one.
                if more.is_empty() || choice.candidates() == 1 {
                    break runs;
                }
                refused.extend(more);
            };
            chosen.insert(choice, runs);
        }
        Ok(list(weight, algorithms, &chosen))
    }

    /// Compares the algorithms of some runs at both ends of each.
    fn compare(
        &mut self,
        bench: &mut Bench,
        runs: &[Asked],
        algorithms: &mut Vec<(Attributes, Option<Recipe>, Compared)>,
    ) -> Result<(), EngineError> {
        for run in runs {
            let known = algorithms.iter().position(|(known, ..)| *known == run.attributes);
            let index = known.unwrap_or_else(|| {
                let recipe = run.attributes.claimed_recipe(bench.k as u64);
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
        Ok(())
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
    let named = |attributes: &Attributes| {
        chosen.values().flatten().any(|run| run.attributes == *attributes)
    };
    for (attributes, recipe, mut compared) in algorithms {
        // Asked again without a refused algorithm, the library may offer others than
        // before; what it then chooses nowhere has no place in a list of choices.
        if recipe.is_some() && compared.differing == 0 && !named(&attributes) {
            continue;
        }
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

const PHASE: &str = "survey";
