//! Safetensors files, mapped: names to bfloat16 matrices.
//!
//! The only `unsafe` of the model layer is here: mapping a file, and viewing
//! its bytes as bfloat16. A map shows later writes to the file, so the digest
//! of the manifest is taken over the map, and [`Weights::check_unchanged`]
//! tells afterwards whether the file was written to in between. A file that is
//! truncated while it is mapped ends the process; it never gives wrong bits.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use memmap2::Mmap;

use super::files::{Bytes, Folder, ModelFile, Opened};
use super::{Config, ModelError};
use crate::num::{Bf16, Digest, sha256};

mod names;
mod shards;

pub use names::architecture;

/// The weights of a model: every tensor of the architecture, and no other.
#[derive(Debug)]
pub struct Weights {
    index: Option<ModelFile>,
    shards: Vec<ModelFile>,
    tensors: BTreeMap<String, Place>,
    output: OutputMatrix,
}

/// Where a tensor is.
#[derive(Debug)]
struct Place {
    shard: usize,
    shape: Vec<usize>,
    bytes: Range<usize>,
}

/// Which matrix gives the logits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputMatrix {
    /// `lm_head.weight`; the configuration says untied.
    Separate,
    /// The embedding; there is no `lm_head.weight`.
    Tied,
    /// The embedding; `lm_head.weight` is there with the same bytes.
    TiedWithEqualCopy,
    /// The embedding, as in transformers; `lm_head.weight` is there with other
    /// bytes and is not used.
    TiedWithOtherCopy,
}

impl OutputMatrix {
    /// Name of the tensor that is used.
    pub fn tensor(self) -> &'static str {
        match self {
            Self::Separate => OUTPUT,
            Self::Tied | Self::TiedWithEqualCopy | Self::TiedWithOtherCopy => EMBEDDING,
        }
    }

    /// What a report should say about it, if anything.
    pub fn warning(self) -> Option<String> {
        match self {
            Self::Separate | Self::Tied | Self::TiedWithEqualCopy => None,
            Self::TiedWithOtherCopy => Some(format!(
                "{OUTPUT} differs from {EMBEDDING} though tie_word_embeddings is true; \
                 {EMBEDDING} is used"
            )),
        }
    }
}

impl Weights {
    /// Maps the weight files of a folder and checks them against `config`.
    ///
    /// # Errors
    /// [`ModelError`], naming the file or tensor.
    pub fn open(folder: &Folder, config: &Config) -> Result<Self, ModelError> {
        let shards::Shards { index, files, tensors } = shards::open(folder)?;
        let mut weights = Self { index, shards: files, tensors, output: OutputMatrix::Separate };
        weights.check(config)?;
        if config.tie_word_embeddings {
            weights.output = match (weights.tensor(OUTPUT), weights.tensor(EMBEDDING)) {
                (Some(head), Some(embedding)) if head.bytes == embedding.bytes => {
                    OutputMatrix::TiedWithEqualCopy
                }
                (Some(_), _) => OutputMatrix::TiedWithOtherCopy,
                (None, _) => OutputMatrix::Tied,
            };
        }
        Ok(weights)
    }

    /// Looks a tensor up by its published name.
    pub fn tensor(&self, name: &str) -> Option<Weight<'_>> {
        let place = self.tensors.get(name)?;
        let bytes = &self.shards[place.shard].bytes()[place.bytes.clone()];
        Some(Weight { shape: &place.shape, bytes })
    }

    /// Names of all tensors, in code-point order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Bytes of all tensors.
    pub fn len_bytes(&self) -> u64 {
        self.tensors.values().map(|place| place.bytes.len() as u64).sum()
    }

    /// Which matrix gives the logits.
    pub fn output_matrix(&self) -> OutputMatrix {
        self.output
    }

    /// The index, if there is one, and every weight file.
    pub fn files(&self) -> impl Iterator<Item = &ModelFile> {
        self.index.iter().chain(&self.shards)
    }

    /// Checks that no weight file was written to since it was opened.
    ///
    /// # Errors
    /// [`ModelError::Changed`] naming the file.
    pub fn check_unchanged(&self) -> Result<(), ModelError> {
        self.files().try_for_each(ModelFile::check_unchanged)
    }

    /// Compares the tensors with the architecture, in both directions.
    fn check(&self, config: &Config) -> Result<(), ModelError> {
        let mut known = 0;
        for (name, expected) in architecture(config) {
            let Some(place) = self.tensors.get(&name) else {
                if name == OUTPUT && config.tie_word_embeddings {
                    continue;
                }
                let untied = "tie_word_embeddings is false, so the embedding does not stand in";
                let reason = if name == OUTPUT { untied } else { "" };
                return Err(ModelError::MissingTensor { tensor: name, reason: reason.into() });
            };
            if place.shape != expected {
                let found = place.shape.clone();
                return Err(ModelError::TensorShape { tensor: name, found, expected });
            }
            known += 1;
        }
        if known == self.tensors.len() {
            return Ok(());
        }
        let expected: std::collections::HashSet<_> =
            architecture(config).map(|(name, _)| name).collect();
        let unknown = self.tensors.iter().find(|(name, _)| !expected.contains(*name));
        unknown.map_or(Ok(()), |(name, place)| {
            Err(ModelError::UnknownTensor {
                tensor: name.clone(),
                file: self.shards[place.shard].name().into(),
                count: self.tensors.len() - known,
            })
        })
    }
}

/// One tensor: bfloat16, row-major, as stored.
#[derive(Clone, Copy, Debug)]
pub struct Weight<'a> {
    /// Dimensions, outermost first.
    pub shape: &'a [usize],
    /// Elements as little-endian bytes; not necessarily aligned.
    pub bytes: &'a [u8],
}

impl<'a> Weight<'a> {
    /// Gives the elements: borrowed from the map where the bytes are aligned
    /// and the host is little-endian, else copied.
    ///
    /// Alignment depends on the file's header; the reference writer pads it, so
    /// the copy is for files of other writers.
    pub fn elements(&self) -> Cow<'a, [Bf16]> {
        if cfg!(target_endian = "little") {
            // SAFETY: `Bf16` is a transparent `u16`: every bit pattern of two
            // bytes is one, and `align_to` gives whole, aligned elements only.
            #[allow(unsafe_code)]
            let (before, elements, after) = unsafe { self.bytes.align_to::<Bf16>() };
            if before.is_empty() && after.is_empty() {
                return Cow::Borrowed(elements);
            }
        }
        Cow::Owned(Bf16::from_le_bytes(self.bytes))
    }
}

/// Maps an open file, refusing a Git LFS pointer.
fn map(opened: Opened) -> Result<ModelFile, ModelError> {
    let map = map_content(&opened)?;
    opened.with_bytes(Bytes::Mapped(map))
}

/// Digests a file of the folder whatever it contains.
///
/// # Errors
/// [`ModelError`], naming the file.
pub(super) fn content_digest(folder: &Folder, path: &str) -> Result<Digest, ModelError> {
    Ok(sha256(&[&map_content(&folder.open_file(path)?)?]))
}

fn map_content(opened: &Opened) -> Result<Mmap, ModelError> {
    // SAFETY: the map is only ever read as bytes or as `u16`s, for which every
    // content is valid, so a write by another process can change what is read
    // but breaks no invariant of ours. That the content is the digested one is
    // checked by `check_unchanged`.
    #[allow(unsafe_code)]
    let map = unsafe { Mmap::map(&opened.file) };
    map.map_err(|e| ModelError::Unreadable { file: opened.name.clone(), reason: e.to_string() })
}

/// The embedding's published name.
pub const EMBEDDING: &str = "model.embed_tokens.weight";

/// The output matrix's published name; absent where it is tied.
pub const OUTPUT: &str = "lm_head.weight";
