//! Matrix products through cuBLASLt, with catalogued algorithms only.
//!
//! The library is asked for what the catalogue's preference says; the first candidate
//! whose descriptor the catalogue lists is taken, else the product is refused. So the
//! bits never depend on what the library prefers today.

use std::collections::BTreeMap;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream};

use super::cublaslt::{Candidate, Library, Shape};
use crate::engine::EngineError;
use crate::num::Bf16;
use crate::recipe::Recipe;
use crate::recipe::catalog::{Catalog, Choice, Preference};
use crate::recipe::cublaslt::{AlgorithmDescriptor, Dispatch};

/// Computes products and remembers which algorithm each shape got.
pub(super) struct Gemm {
    library: Library,
    catalog: Catalog,
    choice: Choice,
    preference: Preference,
    chosen: BTreeMap<Shape, Chosen>,
}

#[derive(Clone, Copy)]
struct Chosen {
    candidate: Candidate,
    recipe: Recipe,
    used: bool,
}

impl Gemm {
    pub(super) fn new(
        stream: &Arc<CudaStream>,
        catalog: Catalog,
        choice: Choice,
    ) -> Result<Self, EngineError> {
        let preference = catalog.preference(choice).ok_or_else(|| EngineError::Refused {
            step: "environment".into(),
            reason: format!("catalogue {} has no {} algorithms", catalog.id(), choice.name()),
        })?;
        let library = Library::new(stream, preference.workspace_bytes)?;
        Ok(Self { library, catalog, choice, preference, chosen: BTreeMap::new() })
    }

    /// Distinct products really computed, ascending.
    pub(super) fn dispatch(&self) -> Vec<Dispatch> {
        let used = self.chosen.iter().filter(|(_, chosen)| chosen.used);
        used.map(|(shape, chosen)| Dispatch {
            m: shape.m,
            n: shape.n,
            k: shape.k,
            algorithm: chosen.candidate.descriptor,
        })
        .collect()
    }

    /// The algorithm that a shape gets, with its recipe.
    pub(super) fn choose(
        &mut self,
        step: &str,
        shape: Shape,
    ) -> Result<(AlgorithmDescriptor, Recipe), EngineError> {
        let chosen = self.chosen(step, shape)?;
        Ok((chosen.candidate.descriptor, chosen.recipe))
    }

    fn chosen(&mut self, step: &str, shape: Shape) -> Result<Chosen, EngineError> {
        if let Some(chosen) = self.chosen.get(&shape) {
            return Ok(*chosen);
        }
        let chosen = self.search(step, shape)?;
        self.chosen.insert(shape, chosen);
        Ok(chosen)
    }

    /// Returns `x · weightᵀ`, each output rounded to bf16 by the library.
    ///
    /// `x`: `[m, k]`; `weight`: `[n, k]`.
    pub(super) fn multiply(
        &mut self,
        step: &str,
        shape: Shape,
        x: &CudaSlice<Bf16>,
        weight: &CudaSlice<Bf16>,
    ) -> Result<CudaSlice<Bf16>, EngineError> {
        let chosen = self.chosen(step, shape)?;
        let out = self.library.multiply(step, shape, &chosen.candidate, &x.as_view(), weight)?;
        self.chosen.insert(shape, Chosen { used: true, ..chosen });
        Ok(out)
    }

    /// Asks the library and takes the first candidate with a known recipe.
    fn search(&self, step: &str, shape: Shape) -> Result<Chosen, EngineError> {
        let mut offered = Vec::new();
        for candidate in self.library.candidates(step, shape, self.preference)? {
            let attributes = &candidate.descriptor.attributes;
            if let Some(recipe) = self.catalog.recipe_of(self.choice, attributes, shape.size()) {
                return Ok(Chosen { candidate, recipe, used: false });
            }
            let reason = self.catalog.why_unknown(self.choice, attributes, shape.size());
            if !offered.contains(&reason) {
                offered.push(reason);
            }
        }
        let Shape { m, n, k } = shape;
        Err(EngineError::Refused {
            step: step.into(),
            reason: format!(
                "catalogue {} knows no algorithm that cuBLASLt offers for m={m} n={n} k={k}: {}",
                self.catalog.id(),
                if offered.is_empty() { "none is offered".into() } else { offered.join("; ") }
            ),
        })
    }
}
