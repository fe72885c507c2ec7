//! A model: configuration, weights and tokenizer, with their digests.
//!
//! A model is a Hugging Face folder. Everything that could change an output bit
//! is read here, checked, and refused by name when it is not understood; the
//! same bytes are digested into the [`Manifest`]. What the model computes is in
//! [`qwen3`]; finding a folder by name is [`locate`]'s business. Nothing here
//! uses the network.

pub mod config;
pub mod error;
pub mod files;
pub mod generation;
mod json;
pub mod locate;
pub mod manifest;
pub mod qwen3;
pub mod tokenizer;
pub mod weights;

use std::path::{Path, PathBuf};

pub use config::Config;
pub use error::{Kind, ModelError};
pub use generation::Generation;
pub use manifest::Manifest;
pub use tokenizer::Tokenizer;
pub use weights::Weights;

use crate::num::Digest;
use files::Folder;

/// A model folder, read and checked.
#[derive(Debug)]
pub struct Model {
    name: String,
    folder: PathBuf,
    config: Config,
    generation: Generation,
    weights: Weights,
    tokenizer: Tokenizer,
    manifest: Manifest,
}

impl Model {
    /// Reads and checks the model in `folder`, hashing every file that defines it.
    ///
    /// The name is the folder's, or `ORG/NAME` for a snapshot in a Hugging Face
    /// cache, whose folder is named after a revision.
    ///
    /// # Errors
    /// Any [`ModelError`]; its [`ModelError::kind`] separates a file that is not
    /// valid from one that is missing or not understood.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let files = Folder::open(folder)?;
        if files.exists("adapter_config.json") {
            // transformers would add the adapter to the weights without asking.
            return Err(ModelError::UnsupportedFile { file: "adapter_config.json".into() });
        }
        let config_file = files.read("config.json")?;
        let config = Config::from_json(config_file.bytes())?;
        let generation_file =
            if files.exists(GENERATION) { Some(files.read(GENERATION)?) } else { None };
        let generation = match &generation_file {
            Some(file) => Generation::from_json(file.bytes(), &config)?,
            None => Generation::without_file(&config),
        };
        let tokenizer_file = files.read("tokenizer.json")?;
        let tokenizer = Tokenizer::from_json(tokenizer_file.bytes(), config.vocab_size)?;
        let weights = Weights::open(&files, &config)?;

        let mut defining: Vec<_> = weights.files().collect();
        defining.extend([&config_file, &tokenizer_file]);
        defining.extend(&generation_file);
        let manifest = Manifest::of(&defining)?;
        Ok(Self {
            name: files.model_name(),
            folder: files.path().to_path_buf(),
            config,
            generation,
            weights,
            tokenizer,
            manifest,
        })
    }

    /// The model's name; a label, never evidence.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder, with symbolic links resolved.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The architecture.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The stop rule, and the recorded sampling fields.
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    /// The weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
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
        manifest::oms_root(&self.folder, &[manifest::OMS_SIGNATURE], &self.manifest).ok()
    }

    /// What a report should mention though it is not an error; one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        self.weights
            .output_matrix()
            .warning()
            .into_iter()
            .chain(self.generation.warning())
            .collect()
    }
}

const GENERATION: &str = "generation_config.json";
