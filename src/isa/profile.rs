//! Typed, checked form of `profiles/*.toml`.
//!
//! A profile says what the tensor core of one GPU family computes: for every
//! instruction the parameters of its block FMA. Files are embedded; unknown
//! keys and out-of-range numbers are refused.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::mma::{Format, MAX_PRODUCTS, MmaProfile, Rounding, ScaleFormat};
use crate::num::{Digest, sha256};

/// The arithmetic of one GPU family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Short name, the file's stem (`h200`).
    pub id: String,
    /// Architecture (`Hopper`).
    pub arch: String,
    /// GPUs the profile holds for, as published measurements name them.
    pub gpus: Vec<String>,
    /// Instructions that are chains of block FMAs, by name of the entry.
    pub mma: BTreeMap<String, Instruction>,
    /// FP8 `mma.sync` that the compiler builds from two binary16 instructions.
    pub emulated: BTreeMap<String, Emulated>,
    /// Block-scaled instructions.
    pub block_scale: BTreeMap<String, BlockScale>,
    /// binary64 instructions, if the GPU has them.
    pub fp64: Option<FmaChain>,
    /// SHA-256 of the file's bytes.
    pub digest: Digest,
}

/// A tensor-core instruction with unscaled operands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// PTX names that compute this (`mma.sync`, `wgmma`).
    pub names: Vec<String>,
    /// Formats of A.
    pub a: Vec<Format>,
    /// Formats of B; every pair with A is possible.
    pub b: Vec<Format>,
    /// Accumulator formats.
    pub c: Vec<Format>,
    /// Output format.
    pub d: Format,
    /// Values of K that the instruction exists for. A K below `n_fma` is one
    /// shorter block.
    pub k: Vec<u16>,
    /// Parameters of each block.
    pub profile: MmaProfile,
}

/// An FP8 instruction made of two binary16 block FMAs and an addition.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Emulated {
    /// PTX names.
    pub names: Vec<String>,
    /// Formats of A.
    pub a: Vec<Format>,
    /// Formats of B.
    pub b: Vec<Format>,
    /// Accumulator and output format.
    pub cd: Format,
    /// K of the instruction.
    pub k: u16,
    /// Entry of `mma` that both halves run through.
    pub through: String,
}

/// A block-scaled instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockScale {
    /// PTX names.
    pub names: Vec<String>,
    /// Formats of A.
    pub a: Vec<Format>,
    /// Formats of B.
    pub b: Vec<Format>,
    /// K of the instruction.
    pub k: u16,
    /// Products that are summed exactly before alignment; 1 where each product
    /// is aligned on its own.
    pub group: u8,
    /// Scale formats, each with the number of k that share a scale.
    pub scales: Vec<(ScaleFormat, u16)>,
    /// Parameters of the block.
    pub profile: MmaProfile,
}

/// A binary64 instruction: a chain of correctly rounded fused multiply-adds.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FmaChain {
    /// PTX names.
    pub names: Vec<String>,
    /// Values of K.
    pub k: Vec<u16>,
}

/// Why a profile was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// No embedded profile has this name.
    #[error("no profile is called {id}; there are {known}")]
    Unknown {
        /// The name asked for.
        id: String,
        /// The names there are.
        known: String,
    },
    /// The file is not TOML of the expected shape.
    #[error("profile {id} does not parse: {source}")]
    Parse {
        /// The profile's name.
        id: String,
        /// What the parser said.
        source: toml::de::Error,
    },
    /// A value contradicts another or its range.
    #[error("profile {id}, entry {entry}: {problem}")]
    Invalid {
        /// The profile's name.
        id: String,
        /// The entry.
        entry: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// The embedded files: name and text.
const FILES: [(&str, &str); 8] = [
    ("v100", include_str!("../../profiles/v100.toml")),
    ("t4", include_str!("../../profiles/t4.toml")),
    ("a100", include_str!("../../profiles/a100.toml")),
    ("l40s", include_str!("../../profiles/l40s.toml")),
    ("h100", include_str!("../../profiles/h100.toml")),
    ("h200", include_str!("../../profiles/h200.toml")),
    ("b200", include_str!("../../profiles/b200.toml")),
    ("rtx-pro-6000", include_str!("../../profiles/rtx-pro-6000.toml")),
];

impl Profile {
    /// Returns the embedded profile of this name.
    ///
    /// # Errors
    /// [`ProfileError::Unknown`] if there is none.
    pub fn by_id(id: &str) -> Result<Self, ProfileError> {
        let (id, text) =
            FILES.iter().find(|(name, _)| *name == id).ok_or_else(|| ProfileError::Unknown {
                id: id.to_owned(),
                known: Self::ids().collect::<Vec<_>>().join(", "),
            })?;
        Self::parse(id, text)
    }

    /// Names of the embedded profiles, oldest architecture first.
    pub fn ids() -> impl Iterator<Item = &'static str> {
        FILES.iter().map(|(name, _)| *name)
    }

    /// Parses and checks the text of a profile file.
    ///
    /// # Errors
    /// [`ProfileError::Parse`] or [`ProfileError::Invalid`].
    pub fn parse(id: &str, text: &str) -> Result<Self, ProfileError> {
        let file: File = toml::from_str(text)
            .map_err(|source| ProfileError::Parse { id: id.to_owned(), source })?;
        let invalid = |entry: &str, problem: String| ProfileError::Invalid {
            id: id.to_owned(),
            entry: entry.to_owned(),
            problem,
        };
        if file.id != id {
            return Err(invalid("id", format!("is {}, expected {id}", file.id)));
        }
        let mut mma = BTreeMap::new();
        for (name, entry) in file.mma {
            let instruction = entry.check().map_err(|problem| invalid(&name, problem))?;
            mma.insert(name, instruction);
        }
        for (name, entry) in &file.emulated {
            let Some(half) = mma.get(&entry.through) else {
                return Err(invalid(name, format!("there is no mma entry {}", entry.through)));
            };
            if half.d != entry.cd {
                return Err(invalid(name, format!("{} has another output", entry.through)));
            }
        }
        let mut block_scale = BTreeMap::new();
        for (name, entry) in file.block_scale {
            let instruction = entry.check().map_err(|problem| invalid(&name, problem))?;
            block_scale.insert(name, instruction);
        }
        Ok(Self {
            id: file.id,
            arch: file.arch,
            gpus: file.gpus,
            mma,
            emulated: file.emulated,
            block_scale,
            fp64: file.fp64,
            digest: sha256(&[text.as_bytes()]),
        })
    }

    /// Parameters of the entry `name`, for example `bf16`.
    pub fn mma(&self, name: &str) -> Option<&MmaProfile> {
        self.mma.get(name).map(|instruction| &instruction.profile)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    id: String,
    arch: String,
    gpus: Vec<String>,
    #[serde(default)]
    mma: BTreeMap<String, InstructionEntry>,
    #[serde(default)]
    emulated: BTreeMap<String, Emulated>,
    #[serde(default)]
    block_scale: BTreeMap<String, BlockScaleEntry>,
    fp64: Option<FmaChain>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InstructionEntry {
    names: Vec<String>,
    a: Vec<Format>,
    b: Vec<Format>,
    c: Vec<Format>,
    d: Format,
    k: Vec<u16>,
    n_fma: u8,
    neab: i8,
    min_alignment_exponent: i16,
    rounding: Rounding,
}

impl InstructionEntry {
    fn check(self) -> Result<Instruction, String> {
        let profile = MmaProfile {
            n_fma: self.n_fma,
            neab: self.neab,
            min_alignment_exponent: self.min_alignment_exponent,
            rounding: self.rounding,
        };
        check_ranges(&profile)?;
        if usize::from(self.n_fma) > MAX_PRODUCTS {
            return Err(format!("n_fma is {}, at most {MAX_PRODUCTS}", self.n_fma));
        }
        for &k in &self.k {
            if k == 0 || (k > u16::from(self.n_fma) && !k.is_multiple_of(u16::from(self.n_fma))) {
                return Err(format!("k {k} is not a whole number of {}", self.n_fma));
            }
        }
        let output = match self.rounding {
            Rounding::TowardZeroF32 | Rounding::TowardZeroE8m13 => Format::F32,
            Rounding::NearestF16 => Format::F16,
        };
        if output != self.d {
            return Err(format!("rounding gives {output:?}, d is {:?}", self.d));
        }
        Ok(Instruction {
            names: self.names,
            a: self.a,
            b: self.b,
            c: self.c,
            d: self.d,
            k: self.k,
            profile,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockScaleEntry {
    names: Vec<String>,
    a: Vec<Format>,
    b: Vec<Format>,
    k: u16,
    group: u8,
    scales: Vec<(ScaleFormat, u16)>,
    neab: i8,
    min_alignment_exponent: i16,
}

impl BlockScaleEntry {
    fn check(self) -> Result<BlockScale, String> {
        if self.group == 0 || !self.k.is_multiple_of(u16::from(self.group)) {
            return Err(format!("k {} is not a whole number of groups of {}", self.k, self.group));
        }
        let terms = self.k / u16::from(self.group);
        if usize::from(terms) > MAX_PRODUCTS {
            return Err(format!("{terms} terms in a block, at most {MAX_PRODUCTS}"));
        }
        for &(_, shared_by) in &self.scales {
            if shared_by == 0
                || !self.k.is_multiple_of(shared_by)
                || !shared_by.is_multiple_of(u16::from(self.group))
            {
                return Err(format!("a scale for {shared_by} k does not divide k {}", self.k));
            }
        }
        let profile = MmaProfile {
            n_fma: terms as u8,
            neab: self.neab,
            min_alignment_exponent: self.min_alignment_exponent,
            rounding: Rounding::TowardZeroF32,
        };
        check_ranges(&profile)?;
        Ok(BlockScale {
            names: self.names,
            a: self.a,
            b: self.b,
            k: self.k,
            group: self.group,
            scales: self.scales,
            profile,
        })
    }
}

/// Refuses parameters for which the fixed-point sum could leave `i64`.
fn check_ranges(profile: &MmaProfile) -> Result<(), String> {
    if profile.n_fma == 0 {
        return Err("n_fma is 0".to_owned());
    }
    // 23 + neab fraction bits, 11 integer bits and 6 carry bits stay below 63.
    if !(-23..=16).contains(&profile.neab) {
        return Err(format!("neab {} is outside -23..=16", profile.neab));
    }
    if !(-200..=0).contains(&profile.min_alignment_exponent) {
        let floor = profile.min_alignment_exponent;
        return Err(format!("min_alignment_exponent {floor} is outside -200..=0"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
