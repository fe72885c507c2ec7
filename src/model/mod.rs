//! A model: configuration, weights and tokenizer, with their digests.
//!
//! A model is a Hugging Face folder. Everything that could change an output bit
//! is read here, checked, and refused by name when it is not understood; the
//! same bytes are digested into the [`Manifest`]. What the model computes is in
//! [`qwen3`]; finding a folder by name is [`locate`]'s business. Nothing here
//! uses the network.

pub mod cache;
pub mod config;
pub mod content;
pub mod error;
pub mod files;
pub mod generation;
pub(crate) mod json;
pub mod locate;
pub mod manifest;
pub mod qwen3;
pub mod synth;
pub mod tokenizer;
pub mod weights;

use std::path::Path;

pub use cache::DigestCache;
pub use config::Config;
pub use content::Content;
pub use error::{Kind, ModelError};
pub use generation::Generation;
pub use manifest::Manifest;
pub use tokenizer::Tokenizer;
pub use weights::Weights;

use crate::num::Digest;

/// A model folder, read, checked and digested.
#[derive(Debug)]
pub struct Model {
    content: Content,
    manifest: Manifest,
}

impl Model {
    /// Reads and checks the model in `folder`, hashing every file that defines it.
    ///
    /// # Errors
    /// Those of [`Content::open`] and of [`Content::digest`].
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        Self::of(Content::open(folder)?)
    }

    /// Digests the files of a folder that was read.
    ///
    /// # Errors
    /// Those of [`Content::digest`].
    pub fn of(content: Content) -> Result<Self, ModelError> {
        Self::watched(content, &|_| {})
    }

    /// As [`Self::of`], telling of the digesting as [`Content::digest_watched`] does.
    ///
    /// # Errors
    /// Those of [`Content::digest`].
    pub fn watched(content: Content, seen: manifest::Seen<'_>) -> Result<Self, ModelError> {
        let manifest = content.digest_watched(seen)?;
        Ok(Self { content, manifest })
    }

    /// What the folder holds.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The model's name; a label, never evidence.
    pub fn name(&self) -> &str {
        self.content.name()
    }

    /// The folder, with symbolic links resolved.
    pub fn folder(&self) -> &Path {
        self.content.folder()
    }

    /// The architecture.
    pub fn config(&self) -> &Config {
        self.content.config()
    }

    /// The stop rule, and the recorded sampling fields.
    pub fn generation(&self) -> &Generation {
        self.content.generation()
    }

    /// The weights.
    pub fn weights(&self) -> &Weights {
        self.content.weights()
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.content.tokenizer()
    }

    /// Path, length and SHA-256 of the files that define the model.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The root that OpenSSF Model Signing gives the folder as it is now, without
    /// `model.sig`: a second identifier, for comparison with a signature of the
    /// publisher.
    ///
    /// `None` if an entry cannot be read, for it may be one that the model does
    /// not use. Every unused file is read, the model's own are not read again.
    pub fn oms_root(&self) -> Option<Digest> {
        manifest::oms_root(self.folder(), &[manifest::OMS_SIGNATURE], &self.manifest).ok()
    }

    /// [`Content::warnings`].
    pub fn warnings(&self) -> Vec<String> {
        self.content.warnings()
    }
}
