//! Catalogues that list every product: for each weight shape and each number of
//! rows, the algorithm that the library chooses, and what was compared of it.
//!
//! The second form of a catalogue, written by `attest catalog build`. Nothing in it
//! is a rule: a product that is not listed is not known.

use serde::{Deserialize, Serialize};

use super::{Choice, Header, Library, Preference};
use crate::recipe::Recipe;
use crate::recipe::cublaslt::Attributes;
use crate::recipe::split_k::Slices;

/// Value of `format` in files of this form.
pub const FORMAT: u32 = 2;

/// Most rows that a listing may go up to.
pub const MAX_M: u64 = 1 << 20;

/// A file of this form.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// [`FORMAT`].
    pub format: u32,
    /// The catalogue's id.
    pub id: String,
    /// GPU profile.
    pub profile: String,
    /// GPUs that it was measured on, as the driver names them.
    pub gpus: Vec<String>,
    /// NVRTC versions of the engine's kernels.
    pub nvrtc: Vec<String>,
    /// The library.
    pub library: Library,
    /// The product that was measured, in words.
    pub product: String,
    /// Workspace that the library was offered (bytes).
    pub workspace_bytes: usize,
    /// Largest number of rows that the library was asked for.
    pub max_m: u64,
    /// When and how.
    pub measured: Measured,
    /// The weights, by shape.
    pub shapes: Vec<Shape>,
    /// A sentence for each algorithm that the library offered and that is not listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

/// When and how a listing was measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Program that measured.
    pub by: String,
    /// Driver version.
    pub driver: String,
    /// CUDA version of the driver.
    pub cuda_driver: String,
    /// Seconds since 1970.
    pub unix_time: u64,
    /// The operands, in words.
    pub data: String,
}

/// All products with weights of one shape.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Rows of the weight.
    pub n: u64,
    /// Length of the dot products.
    pub k: u64,
    /// What the weights are in the model it was built for.
    pub weights: Vec<String>,
    /// The algorithms, each compared with the emulator.
    pub algorithms: Vec<Algorithm>,
    /// What the library chooses without split-K: runs `[first m, last m, index]`.
    pub unsplit: Vec<Run>,
    /// What it chooses by itself, likewise.
    pub stock: Vec<Run>,
}

/// Numbers of rows that get the same algorithm: first, last, and its index in
/// [`Shape::algorithms`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Run(pub u64, pub u64, pub usize);

/// An algorithm, what it computes, and what was compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Algorithm {
    /// What the library says of it.
    pub attributes: Attributes,
    /// The recipe's canonical text.
    pub recipe: String,
    /// What was compared.
    pub compared: Compared,
}

/// Outputs compared bit for bit with the emulator, at some numbers of rows.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// Numbers of rows.
    pub m: Vec<u64>,
    /// bf16 outputs compared.
    pub outputs: u64,
    /// binary32 accumulators compared: the same algorithm with a binary32 result.
    pub accumulators: u64,
    /// bf16 outputs compared with those of a second launch.
    pub repeated: u64,
    /// How many of all these differ.
    pub differing: u64,
}

impl Attributes {
    /// The recipe that the library's own words for an algorithm mean for dot products
    /// of this length; `None` if we know no such recipe. A claim to be measured.
    pub fn claimed_recipe(&self, k: u64) -> Option<Recipe> {
        match (self.split_k, self.reduction_scheme) {
            (0 | 1, 0) => Some(Recipe::SingleWalk),
            (slices_of_k, COMPUTE_TYPE) => {
                let slices_of_k = u8::try_from(slices_of_k).ok()?;
                Slices::split(usize::try_from(k).ok()?, slices_of_k).ok()?;
                Some(Recipe::SplitKWorkspaceF32 { slices: slices_of_k })
            }
            _ => None,
        }
    }
}

impl Shape {
    /// Runs of a choice.
    pub fn runs(&self, choice: Choice) -> &[Run] {
        match choice {
            Choice::Unsplit => &self.unsplit,
            Choice::Stock => &self.stock,
        }
    }

    /// The algorithm of a product of `m` rows.
    pub fn algorithm(&self, choice: Choice, m: u64) -> Option<&Algorithm> {
        let runs = self.runs(choice);
        let run = runs.get(runs.partition_point(|run| run.1 < m)).filter(|run| run.0 <= m)?;
        self.algorithms.get(run.2)
    }

    fn check(&self, max_m: u64) -> Result<(), String> {
        let (n, k) = (self.n, self.k);
        let wrong = |what: String| Err(format!("n={n} k={k}: {what}"));
        if n == 0 || k == 0 {
            return wrong("a weight has no elements".into());
        }
        let mut used = vec![false; self.algorithms.len()];
        for run in self.unsplit.iter().chain(&self.stock) {
            match used.get_mut(run.2) {
                Some(used) => *used = true,
                None => return wrong(format!("there is no algorithm {}", run.2)),
            }
        }
        for runs in [&self.unsplit, &self.stock] {
            let ordered = runs.is_sorted_by(|a, b| a.1 < b.0);
            let inside = runs.iter().all(|run| 0 < run.0 && run.0 <= run.1 && run.1 <= max_m);
            if !ordered || !inside {
                return wrong(format!("the runs of m are not ascending inside 1..={max_m}"));
            }
        }
        if self.unsplit.iter().any(|run| self.algorithms[run.2].attributes.split_k > 1) {
            return wrong("an algorithm with split-K is listed as one without".into());
        }
        for (index, algorithm) in self.algorithms.iter().enumerate() {
            let claimed = algorithm.attributes.claimed_recipe(k).map(|recipe| recipe.to_string());
            if claimed.as_ref() != Some(&algorithm.recipe) {
                let recipe = &algorithm.recipe;
                return wrong(format!("{recipe} is no recipe of {}", algorithm.attributes));
            }
            let Compared { outputs, accumulators, repeated, differing, .. } = algorithm.compared;
            if [outputs, accumulators, repeated].contains(&0) || differing != 0 || !used[index] {
                return wrong(format!(
                    "{}: {outputs} outputs, {accumulators} accumulators, {repeated} repetitions \
                     compared, {differing} differ, {}",
                    algorithm.attributes,
                    if used[index] { "listed" } else { "not used" }
                ));
            }
            let same = |other: &Algorithm| other.attributes == algorithm.attributes;
            if self.algorithms[..index].iter().any(same) {
                return wrong(format!("{} is listed twice", algorithm.attributes));
            }
        }
        for run in self.unsplit.iter().chain(&self.stock) {
            let Algorithm { attributes, compared, .. } = &self.algorithms[run.2];
            if let Some(m) = [run.0, run.1].into_iter().find(|m| !compared.m.contains(m)) {
                return wrong(format!("{attributes} was not compared at m={m}, where a run ends"));
            }
        }
        Ok(())
    }
}

impl Listing {
    /// Checks what the types cannot say, else a sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("format {} is not {FORMAT}", self.format));
        }
        if self.shapes.is_empty() {
            return Err("it lists no product".into());
        }
        if self.max_m == 0 || self.max_m > MAX_M {
            return Err(format!("max_m {} is outside 1..={MAX_M}", self.max_m));
        }
        for (i, shape) in self.shapes.iter().enumerate() {
            let same = |other: &Shape| (other.n, other.k) == (shape.n, shape.k);
            if self.shapes[..i].iter().any(same) {
                return Err(format!("n={} k={} is listed twice", shape.n, shape.k));
            }
            shape.check(self.max_m)?;
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

    /// What the library is asked for.
    pub(super) fn preference(&self, choice: Choice) -> Preference {
        Preference {
            reduction_scheme_mask: choice.reduction_scheme_mask(),
            workspace_bytes: self.workspace_bytes,
            candidates: choice.candidates(),
        }
    }

    /// The products with weights of this shape.
    pub fn shape(&self, n: u64, k: u64) -> Option<&Shape> {
        self.shapes.iter().find(|shape| (shape.n, shape.k) == (n, k))
    }

    /// The algorithm of a product, else a sentence.
    pub(super) fn listed(
        &self,
        choice: Choice,
        (m, n, k): (u64, u64, u64),
    ) -> Result<&Algorithm, String> {
        let id = &self.id;
        let shape = self
            .shape(n, k)
            .ok_or_else(|| format!("catalogue {id} lists no product of n={n} k={k}"))?;
        shape.algorithm(choice, m).ok_or_else(|| {
            format!(
                "catalogue {id} lists no product of n={n} k={k} with m={m}; it goes up to m={}",
                self.max_m
            )
        })
    }
}

/// `CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE` of cublasLt.h: partial results stay
/// binary32.
const COMPUTE_TYPE: u32 = 2;
