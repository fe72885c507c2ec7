//! Catalogues of algorithm families: which kernels were measured, up to which size.
//!
//! The first form of a catalogue. It names no shapes: an algorithm of a listed
//! family is known for every product up to the sizes that were compared.

use serde::Deserialize;

use super::{Choice, Header, Library, Preference};
use crate::recipe::Recipe;
use crate::recipe::cublaslt::Attributes;
use crate::recipe::split_k::K_TILE;

/// One measured family of algorithms.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The library's number of the kernel family.
    pub id: u32,
    /// Largest number of K slices that was measured.
    pub max_split_k: u32,
    /// The library's number of the reduction scheme.
    pub reduction_scheme: u32,
    /// What it computes.
    pub recipe: FamilyRecipe,
    /// Largest number of rows of the result that was measured.
    pub max_m: u64,
    /// Largest number of its columns that was measured.
    pub max_n: u64,
    /// Longest dot products that were measured.
    pub max_k: u64,
    /// What was compared.
    pub evidence: String,
}

/// The recipes that a family can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FamilyRecipe {
    /// [`Recipe::SingleWalk`].
    SingleWalk,
}

impl FamilyRecipe {
    /// The recipe.
    pub fn recipe(self) -> Recipe {
        match self {
            Self::SingleWalk => Recipe::SingleWalk,
        }
    }
}

/// A file of this form.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Families {
    id: String,
    profile: String,
    gpus: Vec<String>,
    nvrtc: Vec<String>,
    library: Library,
    product: String,
    preference: Asked,
    #[serde(rename = "algorithms")]
    pub(super) families: Vec<Family>,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    reduction_scheme_mask: u32,
    workspace_bytes: usize,
    candidates: usize,
}

impl Families {
    /// Checks what the types cannot say, else a sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.families.is_empty() {
            return Err("it lists no algorithm".into());
        }
        // The library's C interface takes an int.
        let asked = self.preference.candidates;
        if asked == 0 || asked > MAX_CANDIDATES {
            return Err(format!("{asked} candidates are outside 1..={MAX_CANDIDATES}"));
        }
        for (i, family) in self.families.iter().enumerate() {
            if self.families[..i].iter().any(|earlier| earlier.id == family.id) {
                return Err(format!("algorithm {} is listed twice", family.id));
            }
        }
        Ok(())
    }

    pub(super) fn header(&self) -> Header<'_> {
        Header {
            id: &self.id,
            profile: &self.profile,
            gpus: &self.gpus,
            nvrtc: &self.nvrtc,
            library: &self.library,
            product: &self.product,
        }
    }

    pub(super) fn preference(&self, choice: Choice) -> Option<Preference> {
        match choice {
            Choice::Unsplit => Some(Preference {
                reduction_scheme_mask: Some(self.preference.reduction_scheme_mask),
                workspace_bytes: self.preference.workspace_bytes,
                candidates: self.preference.candidates,
            }),
            Choice::Stock => None,
        }
    }

    pub(super) fn recipe(
        &self,
        attributes: &Attributes,
        (m, n, k): (u64, u64, u64),
    ) -> Option<Recipe> {
        let family = self.families.iter().find(|family| {
            family.id == attributes.id
                && attributes.split_k <= family.max_split_k
                && attributes.reduction_scheme == family.reduction_scheme
                && m <= family.max_m
                && n <= family.max_n
                && k <= family.max_k
                && is_whole(k)
        })?;
        match family.recipe {
            FamilyRecipe::SingleWalk => (attributes.split_k <= 1).then_some(Recipe::SingleWalk),
        }
    }

    /// Says why an algorithm has no recipe for a product of this size.
    pub(super) fn why_unknown(
        &self,
        attributes: &Attributes,
        (m, n, k): (u64, u64, u64),
    ) -> String {
        let (id, split) = (attributes.id, attributes.split_k);
        let family = self.families.iter().find(|family| family.id == id);
        let limits = family.map_or(Vec::new(), |family| {
            vec![("m", m, family.max_m), ("n", n, family.max_n), ("k", k, family.max_k)]
        });
        match limits.into_iter().find(|(_, asked, max)| asked > max) {
            Some((name, asked, max)) => format!(
                "algorithm {id} was measured up to {name}={max}, the product has {name}={asked}"
            ),
            None if family.is_some() && !is_whole(k) => format!(
                "algorithm {id} was measured with multiples of {K_TILE} as k, the product has \
                 k={k}: the library can lose the last {} terms",
                k % K_TILE as u64
            ),
            None => format!(
                "algorithm {id} (split {split}, reduction scheme {}) was not measured",
                attributes.reduction_scheme
            ),
        }
    }
}

/// Whether K ends where a tile of it does: no other product was measured, and the
/// library is publicly reported to lose what is left over.
fn is_whole(k: u64) -> bool {
    k.is_multiple_of(K_TILE as u64)
}

const MAX_CANDIDATES: usize = 1024;
