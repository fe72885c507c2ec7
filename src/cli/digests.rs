//! Digests of a model's files, and the cache of them for commands that are asked to
//! trust it.

use std::sync::{Arc, Mutex, PoisonError};

use super::output::Output;
use super::paths;
use super::progress::Status;
use crate::model::{Content, DigestCache, Model, ModelError};

/// Digests the files of a model, showing how far that is.
pub(super) fn digested(content: Content, output: &Output) -> Result<Model, ModelError> {
    let total = content.len_bytes();
    let progress = Mutex::new((0, output.progress("hashing the model's files")));
    Model::watched(content, &|bytes| {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.0 += bytes;
        let status = Status::of_bytes(progress.0, total);
        progress.1.show(&status);
    })
}

/// A cache that the user asked for, if it can be had.
pub(super) struct Remembered(Option<Arc<DigestCache>>);

impl Remembered {
    /// Opens the cache if it was asked for. One that cannot be used is named and
    /// costs the time of hashing, nothing else.
    pub(super) fn open(asked: bool, output: &Output) -> Self {
        if !asked {
            return Self(None);
        }
        let Some(path) = paths::digest_cache() else {
            output.note("note: the cache folder is not known, so every file is hashed");
            return Self(None);
        };
        let (cache, error) = DigestCache::open(&path);
        if let Some(error) = error {
            output.note(&format!("note: {error}; it is not used, and every file is hashed"));
        }
        Self(Some(Arc::new(cache)))
    }

    /// For a model to use.
    pub(super) fn cache(&self) -> Option<Arc<DigestCache>> {
        self.0.clone()
    }

    /// Keeps what was found out.
    pub(super) fn save(&self, output: &Output) {
        if let Some(Err(error)) = self.0.as_ref().map(|cache| cache.save()) {
            output.note(&format!("note: the digest cache could not be written: {error}"));
        }
    }
}
