//! Dispatch catalogues: which library algorithms were measured, on which GPU.
//!
//! A catalogue is data with evidence (`catalogs/*.json`,
//! `schemas/catalog.schema.json`); what its words mean is code
//! ([`super::cublaslt`]), so that it is reviewed.

use serde::Deserialize;

use crate::data::CATALOGS;
use crate::num::{Digest, sha256};

/// A checked catalogue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Catalog {
    file: File,
    digest: Digest,
}

/// One measured algorithm.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Algorithm {
    /// The library's number of the kernel family.
    pub id: u32,
    /// Largest number of K slices that was measured.
    pub max_split_k: u32,
    /// The library's number of the reduction scheme.
    pub reduction_scheme: u32,
    /// What it computes.
    pub recipe: CataloguedRecipe,
    /// Largest number of rows of the result that was measured.
    pub max_m: u64,
    /// Largest number of its columns that was measured.
    pub max_n: u64,
    /// Longest dot products that were measured.
    pub max_k: u64,
    /// What was compared.
    pub evidence: String,
}

/// The recipes that a catalogue can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CataloguedRecipe {
    /// [`super::Recipe::SingleWalk`].
    SingleWalk,
}

/// What the library is asked for; part of what was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preference {
    /// `CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK`; 0 forbids split-K.
    pub reduction_scheme_mask: u32,
    /// `CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES`.
    pub workspace_bytes: usize,
    /// Candidates asked for; the first with a known recipe is taken.
    pub candidates: usize,
}

/// Why a catalogue was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The crate carries no such catalogue.
    #[error("no dispatch catalogue {id}; known: {known}")]
    Unknown {
        /// The id looked up.
        id: String,
        /// The ids known.
        known: String,
    },
    /// The file does not have its documented form.
    #[error("dispatch catalogue {id}: {problem}")]
    Malformed {
        /// The id looked up.
        id: String,
        /// What is wrong.
        problem: String,
    },
}

impl Catalog {
    /// Looks one of the crate's own catalogues up.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn by_id(id: &str) -> Result<Self, CatalogError> {
        let Some((_, text)) = CATALOGS.iter().find(|(known, _)| *known == id) else {
            let known: Vec<&str> = Self::ids().collect();
            return Err(CatalogError::Unknown { id: id.into(), known: known.join(", ") });
        };
        Self::parse(id, text)
    }

    /// Ids of the crate's own catalogues.
    pub fn ids() -> impl Iterator<Item = &'static str> {
        CATALOGS.iter().map(|(id, _)| *id)
    }

    /// Reads a catalogue that is expected to have this id.
    ///
    /// # Errors
    /// [`CatalogError::Malformed`].
    pub fn parse(id: &str, text: &str) -> Result<Self, CatalogError> {
        let malformed = |problem: String| CatalogError::Malformed { id: id.into(), problem };
        let file: File = serde_json::from_str(text).map_err(|e| malformed(e.to_string()))?;
        if file.id != id {
            return Err(malformed(format!("the file calls itself {}", file.id)));
        }
        if file.library.name != LIBRARY {
            return Err(malformed(format!("library {} is not {LIBRARY}", file.library.name)));
        }
        if file.library.versions.is_empty() || file.algorithms.is_empty() {
            return Err(malformed("it lists no library version or no algorithm".into()));
        }
        // The library's C interface takes an int.
        if file.preference.candidates == 0 || file.preference.candidates > MAX_CANDIDATES {
            let asked = file.preference.candidates;
            return Err(malformed(format!("{asked} candidates are outside 1..={MAX_CANDIDATES}")));
        }
        for (i, algorithm) in file.algorithms.iter().enumerate() {
            if file.algorithms[..i].iter().any(|earlier| earlier.id == algorithm.id) {
                return Err(malformed(format!("algorithm {} is listed twice", algorithm.id)));
            }
        }
        Ok(Self { file, digest: sha256(&[text.as_bytes()]) })
    }

    /// The catalogue's id.
    pub fn id(&self) -> &str {
        &self.file.id
    }

    /// Id of the GPU profile that it was measured on.
    pub fn profile(&self) -> &str {
        &self.file.profile
    }

    /// SHA-256 of the file.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The matrix product that was measured, in words.
    pub fn product(&self) -> &str {
        &self.file.product
    }

    /// Whether the rows were measured with this GPU and these versions, else a
    /// sentence. NVRTC counts because it carries CUDA's math functions. Versions
    /// are compared as text, so that each has one spelling.
    pub fn covers(&self, gpu: &str, nvrtc: &str, library: &str) -> Result<(), String> {
        let id = self.id();
        let versions: Vec<String> = self.versions().iter().map(u64::to_string).collect();
        let facts = [
            ("the GPU", gpu, &self.file.gpus),
            ("NVRTC", nvrtc, &self.file.nvrtc),
            ("cuBLASLt", library, &versions),
        ];
        match facts.into_iter().find(|(_, found, known)| !known.iter().any(|k| k == found)) {
            None => Ok(()),
            Some((what, found, known)) => {
                let known = known.join(", ");
                Err(format!("{what} is {found:?}; catalogue {id} was measured with {known}"))
            }
        }
    }

    /// Library versions that the rows were measured with.
    pub fn versions(&self) -> &[u64] {
        &self.file.library.versions
    }

    /// What the library is asked for.
    pub fn preference(&self) -> Preference {
        self.file.preference
    }

    /// The measured algorithms.
    pub fn algorithms(&self) -> &[Algorithm] {
        &self.file.algorithms
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    id: String,
    profile: String,
    gpus: Vec<String>,
    nvrtc: Vec<String>,
    library: Library,
    product: String,
    preference: Preference,
    algorithms: Vec<Algorithm>,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Library {
    name: String,
    versions: Vec<u64>,
}

const LIBRARY: &str = "cublasLt";
const MAX_CANDIDATES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_catalogue_is_well_formed() {
        for id in Catalog::ids() {
            let catalog = Catalog::by_id(id).unwrap();
            assert_eq!(catalog.id(), id);
            assert!(!catalog.algorithms().is_empty());
        }
        let catalog = Catalog::by_id("h200-cublaslt-13.1").unwrap();
        assert_eq!(catalog.covers("NVIDIA H200", "13.0", "130100"), Ok(()));
        for (gpu, nvrtc, library, named) in [
            ("NVIDIA H100", "13.0", "130100", "NVIDIA H100"),
            ("NVIDIA H200", "13.1", "130100", "13.1"),
            ("NVIDIA H200", "13.0", "+130100", "+130100"),
        ] {
            assert!(catalog.covers(gpu, nvrtc, library).unwrap_err().contains(named));
        }
        assert_eq!(catalog.preference().reduction_scheme_mask, 0);
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        let (id, good) = CATALOGS[0];
        // (text to replace, replacement, words of the error)
        let cases = [
            ("\"id\": \"h200-", "\"id\": \"h100-", "calls itself h100-cublaslt-13.1"),
            ("cublasLt\"", "cutlass\"", "library cutlass is not cublasLt"),
            ("[130100]", "[]", "no library version"),
            ("\"profile\"", "\"gpu\"", "unknown field `gpu`"),
            ("single_walk", "split_k", "unknown variant `split_k`"),
            ("\"candidates\": 32", "\"candidates\": 0", "0 candidates"),
        ];
        for (from, to, words) in cases {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good, "{from}");
            let error = Catalog::parse(id, &text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let unknown = Catalog::by_id("t4").unwrap_err().to_string();
        assert_eq!(unknown, "no dispatch catalogue t4; known: h200-cublaslt-13.1");
    }
}
