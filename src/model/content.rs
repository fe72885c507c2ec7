//! What a model folder holds, read and checked, before its files are digested.
//!
//! Digesting reads every byte of the weights, parsing only their headers. Who
//! knows which digests to expect can compute with the weights meanwhile, and
//! must throw the result away if the digests turn out to be others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{Folder, ModelFile};
use super::manifest::Seen;
use super::{Config, DigestCache, Generation, Manifest, ModelError, Tokenizer, Weights};

/// A model folder, read and checked, its files not digested yet.
#[derive(Debug)]
pub struct Content {
    name: String,
    folder: PathBuf,
    config: Config,
    generation: Generation,
    weights: Weights,
    tokenizer: Tokenizer,
    /// Configuration, tokenizer, generation configuration.
    others: Vec<ModelFile>,
    cache: Option<Arc<DigestCache>>,
}

impl Content {
    /// Reads and checks the model in `folder`.
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
        let Configuration { config, file: config_file } = Configuration::of(&files)?;
        let generation_file =
            if files.exists(GENERATION) { Some(files.read(GENERATION)?) } else { None };
        let generation = match &generation_file {
            Some(file) => Generation::from_json(file.bytes(), &config)?,
            None => Generation::without_file(&config),
        };
        let tokenizer_file = files.read("tokenizer.json")?;
        let tokenizer = Tokenizer::from_json(tokenizer_file.bytes(), config.vocab_size)?;
        let weights = Weights::open(&files, &config)?;

        let mut others = vec![config_file, tokenizer_file];
        others.extend(generation_file);
        Ok(Self {
            name: files.model_name(),
            folder: files.path().to_path_buf(),
            config,
            generation,
            weights,
            tokenizer,
            others,
            cache: None,
        })
    }

    /// Digests of weight files may come from a cache, and go there.
    #[must_use]
    pub fn with_cache(mut self, cache: Option<Arc<DigestCache>>) -> Self {
        self.cache = cache;
        self
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

    /// Every file that defines the model.
    pub fn files(&self) -> impl Iterator<Item = &ModelFile> {
        self.weights.files().chain(&self.others)
    }

    /// Digests every file that defines the model, several at a time.
    ///
    /// # Errors
    /// As [`Manifest::of`].
    pub fn digest(&self) -> Result<Manifest, ModelError> {
        self.digest_watched(&|_| {})
    }

    /// As [`Self::digest`]; `seen` is told how many bytes more are done, of
    /// [`Self::len_bytes`] in all.
    ///
    /// # Errors
    /// As [`Manifest::of`].
    pub fn digest_watched(&self, seen: Seen<'_>) -> Result<Manifest, ModelError> {
        let files: Vec<_> = self.files().collect();
        Manifest::of(&files, self.cache.as_deref(), seen)
    }

    /// Bytes of every file that defines the model.
    pub fn len_bytes(&self) -> u64 {
        self.files().map(|file| file.bytes().len() as u64).sum()
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

/// The configuration of a model, with the file it was read from.
#[derive(Debug)]
pub struct Configuration {
    /// What it says.
    pub config: Config,
    /// Its file.
    pub file: ModelFile,
}

impl Configuration {
    /// Reads the configuration of the model in `folder`, and nothing else of it.
    ///
    /// # Errors
    /// [`ModelError`], naming the folder, the file or the field.
    pub fn read(folder: &Path) -> Result<Self, ModelError> {
        Self::of(&Folder::open(folder)?)
    }

    fn of(files: &Folder) -> Result<Self, ModelError> {
        let file = files.read(CONFIG)?;
        Ok(Self { config: Config::from_json(file.bytes())?, file })
    }
}

/// Name of the configuration's file.
pub const CONFIG: &str = "config.json";

const GENERATION: &str = "generation_config.json";
