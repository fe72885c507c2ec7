//! Digests of weight files, remembered from one run to the next on request.
//!
//! A digest is taken from here only for the very file it was made of: the same
//! path, length, time of modification, device, inode, and time of the inode's last
//! change. That shows honest mistakes, not lies: whoever can write the cache, or
//! the disk below the file system, chooses what is found here
//! (`spec/verification.md`, V12).

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::files::ModelFile;
use crate::num::{Digest, sha256};

/// Remembered digests, and the file they are kept in.
#[derive(Debug)]
pub struct DigestCache {
    path: PathBuf,
    known: Mutex<BTreeMap<String, Entry>>,
}

/// One file's digest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: String,
    stamp: String,
    sha256: String,
}

/// The cache as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: String,
    /// Of the entries' JSON text: a damaged digest must not look like a changed model.
    sha256: String,
    entries: Vec<Entry>,
}

/// Why the file of a cache was not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// It cannot be read.
    #[error("digest cache {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's own words.
        reason: String,
    },
    /// It is not what was written.
    #[error("digest cache {} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl DigestCache {
    /// Reads the cache at `path`; empty if there is none. If what is there cannot
    /// be used, the cache is empty too, and the reason is given.
    pub fn open(path: &Path) -> (Self, Option<CacheError>) {
        let (known, error) = match read(path) {
            Ok(known) => (known, None),
            Err(error) => (BTreeMap::new(), Some(error)),
        };
        (Self { path: path.to_path_buf(), known: Mutex::new(known) }, error)
    }

    /// The digest of a weight file, if it is known.
    pub(super) fn find(&self, file: &ModelFile) -> Option<Digest> {
        let identity = file.identity()?;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = known.get(&identity.path).filter(|entry| entry.stamp == identity.stamp)?;
        Digest::from_hex(&entry.sha256)
    }

    /// Remembers the digest of a weight file, if it would be found again.
    pub(super) fn remember(&self, file: &ModelFile, digest: Digest) {
        let Some(identity) = file.identity().filter(|identity| identity.settled) else { return };
        let (path, stamp) = (identity.path.clone(), identity.stamp);
        let entry = Entry { path, stamp, sha256: digest.to_string() };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(identity.path, entry);
    }

    /// Writes what is known beside its place and moves it there.
    ///
    /// # Errors
    /// The system's.
    pub fn save(&self) -> io::Result<()> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let entries: Vec<Entry> = known.values().cloned().collect();
        let stored = Stored {
            format: FORMAT.into(),
            sha256: sha256(&[&serde_json::to_vec(&entries)?]).to_string(),
            entries,
        };
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let partial = self.path.with_extension(format!("{}.partial", std::process::id()));
        let written = fs::File::create(&partial).and_then(|mut file| {
            file.write_all(&serde_json::to_vec(&stored)?)?;
            file.sync_all()
        });
        let moved = written.and_then(|()| fs::rename(&partial, &self.path));
        if moved.is_err() {
            let _ = fs::remove_file(&partial);
        }
        moved
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, Entry>, CacheError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => {
            let (path, reason) = (path.to_path_buf(), error.to_string());
            return Err(CacheError::Unreadable { path, reason });
        }
    };
    let damaged = |reason: String| CacheError::Damaged { path: path.to_path_buf(), reason };
    let stored: Stored =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if stored.format != FORMAT {
        return Err(damaged(format!("its format is {:?}, expected {FORMAT:?}", stored.format)));
    }
    let entries = serde_json::to_vec(&stored.entries).map_err(|e| damaged(e.to_string()))?;
    let found = sha256(&[&entries]).to_string();
    if stored.sha256 != found {
        return Err(damaged(format!("its entries have SHA-256 {found}, not {}", stored.sha256)));
    }
    Ok(stored.entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect())
}

const FORMAT: &str = "attest digest cache 1";

#[cfg(test)]
#[cfg(unix)]
mod tests;
