//! Dispatch catalogues: which library algorithms were measured, on which GPU.
//!
//! A catalogue is data with evidence (`catalogs/*.json`,
//! `schemas/catalog.schema.json`, `schemas/listing.schema.json`). There are two
//! forms: families of algorithms with the sizes they were measured up to
//! ([`families`]), and listings of every product of a model ([`listing`]).

pub mod families;
pub mod listing;

use serde::{Deserialize, Serialize};

use self::families::Families;
use self::listing::Listing;
use super::Recipe;
use super::cublaslt::Attributes;
use crate::data::CATALOGS;
use crate::num::{Digest, sha256};

/// A checked catalogue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Catalog {
    form: Form,
    digest: Digest,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Form {
    Families(Families),
    Listing(Listing),
}

/// Which algorithm the library is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Choice {
    /// One without split-K, so that a row's bits do not depend on the others.
    Unsplit,
    /// The one that it prefers.
    Stock,
}

impl Choice {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Unsplit, Self::Stock];

    /// Name in files and commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unsplit => "unsplit",
            Self::Stock => "stock",
        }
    }

    /// How many candidates a listing's user asks for; the first that is listed is taken.
    /// What the library prefers is one.
    pub fn candidates(self) -> usize {
        match self {
            Self::Unsplit => 32,
            Self::Stock => 1,
        }
    }

    /// `CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK`, if it is set: 0 forbids split-K.
    pub fn reduction_scheme_mask(self) -> Option<u32> {
        match self {
            Self::Unsplit => Some(0),
            Self::Stock => None,
        }
    }
}

/// What the library is asked for; part of what was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preference {
    /// `CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK`; the library's default if `None`.
    pub reduction_scheme_mask: Option<u32>,
    /// `CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES`.
    pub workspace_bytes: usize,
    /// Candidates asked for; the first with a known recipe is taken.
    pub candidates: usize,
}

/// The library that a catalogue is about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Library {
    /// Always `cublasLt`.
    pub name: String,
    /// Versions that were measured.
    pub versions: Vec<u64>,
}

/// What both forms say first.
struct Header<'a> {
    id: &'a str,
    profile: &'a str,
    gpus: &'a [String],
    nvrtc: &'a [String],
    library: &'a Library,
    product: &'a str,
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

    /// The first of the crate's own catalogues that knows products of this choice with
    /// all of these weights `(n, k)`; listings come before families.
    pub fn knowing(choice: Choice, weights: &[(u64, u64)]) -> Option<Self> {
        let catalogs: Vec<Self> = Self::ids().filter_map(|id| Self::by_id(id).ok()).collect();
        let lists = |catalog: &&Self| {
            let listing = catalog.listing();
            listing
                .is_some_and(|listing| weights.iter().all(|&(n, k)| listing.shape(n, k).is_some()))
        };
        let families =
            |catalog: &&Self| catalog.listing().is_none() && catalog.preference(choice).is_some();
        catalogs.iter().find(lists).or_else(|| catalogs.iter().find(families)).cloned()
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
        let read = |error: serde_json::Error| malformed(error.to_string());
        let format: Format = serde_json::from_str(text).map_err(read)?;
        let form = match format.format {
            None => Form::Families(serde_json::from_str(text).map_err(read)?),
            Some(_) => Form::Listing(serde_json::from_str(text).map_err(read)?),
        };
        let catalog = Self { form, digest: sha256(&[text.as_bytes()]) };
        catalog.check(id).map_err(malformed)?;
        Ok(catalog)
    }

    fn check(&self, id: &str) -> Result<(), String> {
        let header = self.header();
        if header.id != id {
            return Err(format!("the file calls itself {}", header.id));
        }
        if header.library.name != LIBRARY {
            return Err(format!("library {} is not {LIBRARY}", header.library.name));
        }
        if header.library.versions.is_empty() {
            return Err("it lists no library version".into());
        }
        match &self.form {
            Form::Families(families) => families.check(),
            Form::Listing(listing) => listing.check(),
        }
    }

    fn header(&self) -> Header<'_> {
        match &self.form {
            Form::Families(families) => families.header(),
            Form::Listing(listing) => listing.header(),
        }
    }

    /// The catalogue's id.
    pub fn id(&self) -> &str {
        self.header().id
    }

    /// Id of the GPU profile that it was measured on.
    pub fn profile(&self) -> &str {
        self.header().profile
    }

    /// SHA-256 of the file.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The matrix product that was measured, in words.
    pub fn product(&self) -> &str {
        self.header().product
    }

    /// Whether the rows were measured with this GPU and these versions, else a
    /// sentence. NVRTC counts because it carries CUDA's math functions. Versions
    /// are compared as text, so that each has one spelling.
    pub fn covers(&self, gpu: &str, nvrtc: &str, library: &str) -> Result<(), String> {
        let header = self.header();
        let versions: Vec<String> = self.versions().iter().map(u64::to_string).collect();
        let facts = [
            ("the GPU", gpu, header.gpus),
            ("NVRTC", nvrtc, header.nvrtc),
            ("cuBLASLt", library, &versions),
        ];
        match facts.into_iter().find(|(_, found, known)| !known.iter().any(|k| k == found)) {
            None => Ok(()),
            Some((what, found, known)) => {
                let (id, known) = (header.id, known.join(", "));
                Err(format!("{what} is {found:?}; catalogue {id} was measured with {known}"))
            }
        }
    }

    /// Library versions that the rows were measured with.
    pub fn versions(&self) -> &[u64] {
        &self.header().library.versions
    }

    /// Every product, if this catalogue is a listing.
    pub fn listing(&self) -> Option<&Listing> {
        match &self.form {
            Form::Families(_) => None,
            Form::Listing(listing) => Some(listing),
        }
    }

    /// The measured families, if this catalogue is of that form.
    pub fn families(&self) -> &[families::Family] {
        match &self.form {
            Form::Families(families) => &families.families,
            Form::Listing(_) => &[],
        }
    }

    /// What the library is asked for; `None` if the catalogue knows nothing about
    /// this choice.
    pub fn preference(&self, choice: Choice) -> Option<Preference> {
        match &self.form {
            Form::Families(families) => families.preference(choice),
            Form::Listing(listing) => Some(listing.preference(choice)),
        }
    }

    /// The recipe of a product `[m, k] · [n, k]ᵀ` that the library computes by its own
    /// choice, else a sentence.
    ///
    /// # Errors
    /// A sentence: the product is not listed, so nobody knows.
    pub fn planned(&self, choice: Choice, size: (u64, u64, u64)) -> Result<Recipe, String> {
        match &self.form {
            Form::Families(_) => {
                let id = self.id();
                Err(format!("catalogue {id} lists no products, only families of algorithms"))
            }
            Form::Listing(listing) => {
                let listed = listing.listed(choice, size)?;
                // Checked when the file was read.
                let recipe = listed.attributes.claimed_recipe(size.2);
                recipe.ok_or_else(|| format!("{} has no recipe", listed.attributes))
            }
        }
    }

    /// Returns the recipe that an algorithm follows for a product
    /// `[m, k] · [n, k]ᵀ`, or `None` if the catalogue does not list it as measured:
    /// then nobody knows.
    pub fn recipe_of(
        &self,
        choice: Choice,
        attributes: &Attributes,
        size: (u64, u64, u64),
    ) -> Option<Recipe> {
        match &self.form {
            Form::Families(families) => {
                families.preference(choice).and_then(|_| families.recipe(attributes, size))
            }
            Form::Listing(listing) => {
                let listed = listing.listed(choice, size).ok()?;
                let same = listed.attributes == *attributes;
                if same { listed.attributes.claimed_recipe(size.2) } else { None }
            }
        }
    }

    /// Says why an algorithm has no recipe for a product of this size.
    pub fn why_unknown(
        &self,
        choice: Choice,
        attributes: &Attributes,
        size: (u64, u64, u64),
    ) -> String {
        match &self.form {
            Form::Families(families) => match families.preference(choice) {
                Some(_) => families.why_unknown(attributes, size),
                None => format!("catalogue {} has no {} algorithms", self.id(), choice.name()),
            },
            Form::Listing(listing) => match listing.listed(choice, size) {
                Err(sentence) => sentence,
                Ok(listed) => format!(
                    "{} is listed for m={}, found {}",
                    listed.attributes, size.0, attributes
                ),
            },
        }
    }
}

/// Only the field that tells the forms apart.
#[derive(Deserialize)]
struct Format {
    format: Option<u32>,
}

const LIBRARY: &str = "cublasLt";

#[cfg(test)]
mod tests;
