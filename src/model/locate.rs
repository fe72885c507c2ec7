//! From the name of a model to its folder; never the network.
//!
//! A name is tried as a folder, then in the folders of `$ATTEST_MODELS`, then in
//! the Hugging Face cache. The first place that has it wins; two candidates in
//! one place are an error, never a choice.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::ModelError;
use super::files::cached_name;

/// Where models may be, as taken from the environment.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Places {
    /// Folders that hold model folders (`$ATTEST_MODELS`).
    pub folders: Vec<PathBuf>,
    /// The Hugging Face cache, a folder of `models--ORG--NAME` entries.
    pub cache: Option<PathBuf>,
}

impl Places {
    /// Reads `$ATTEST_MODELS` (folders separated by colons; semicolons on
    /// Windows), `$HF_HUB_CACHE`, `$HF_HOME`, `$XDG_CACHE_HOME` and `$HOME`.
    ///
    /// # Source
    /// Cache folder: "Environment variables" of the `huggingface_hub` manual.
    pub fn from_env() -> Self {
        let path = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let folders = env::var_os("ATTEST_MODELS").unwrap_or_default();
        let home_cache = || path("HOME").or_else(|| path("USERPROFILE")).map(|h| h.join(".cache"));
        let cache = path("HF_HUB_CACHE")
            .or_else(|| path("HF_HOME").map(|home| home.join("hub")))
            .or_else(|| {
                let cache = path("XDG_CACHE_HOME").or_else(home_cache)?;
                Some(cache.join("huggingface").join("hub"))
            });
        Self {
            folders: env::split_paths(&folders).filter(|p| !p.as_os_str().is_empty()).collect(),
            cache,
        }
    }

    /// Finds the folder of a model by path or name. Names are compared without
    /// case: `qwen3-4b` finds `Qwen3-4B`, and in the cache `Qwen/Qwen3-4B`.
    ///
    /// # Errors
    /// [`ModelError::NotFound`] listing the places tried;
    /// [`ModelError::Ambiguous`] listing the candidates of one place.
    pub fn resolve(&self, name: &str) -> Result<PathBuf, ModelError> {
        let looked = vec![format!("folder {name}")];
        if !name.is_empty() && Path::new(name).is_dir() {
            return Ok(name.into());
        }
        // Only a name is searched for: a path that is wrong stays wrong.
        if !is_name(name) {
            return Err(ModelError::NotFound { name: name.into(), looked });
        }
        self.search(name, looked)
    }

    /// Finds the folder of a model by a name that somebody else chose, such as
    /// the one in a transcript: it is looked up and never taken as a path.
    ///
    /// # Errors
    /// [`ModelError::NotAName`]; otherwise as [`Self::resolve`].
    pub fn find(&self, name: &str) -> Result<PathBuf, ModelError> {
        if !is_name(name) {
            return Err(ModelError::NotAName { name: name.into() });
        }
        self.search(name, Vec::new())
    }

    fn search(&self, name: &str, mut looked: Vec<String>) -> Result<PathBuf, ModelError> {
        for folder in &self.folders {
            looked.push(folder.join(name).display().to_string());
            if let Some(found) = one(name, in_folder(folder, name))? {
                return Ok(found);
            }
        }
        if let Some(cache) = &self.cache {
            let entries = in_cache(cache, name);
            let snapshots = entries.iter().filter_map(|entry| snapshot(entry)).collect();
            if let Some(found) = one(name, snapshots)? {
                return Ok(found);
            }
            looked.push(format!("Hugging Face cache {}", cache.display()));
            let incomplete = |p: &PathBuf| format!("{} (no snapshot of main)", p.display());
            looked.extend(entries.iter().map(incomplete));
        }
        Err(ModelError::NotFound { name: name.into(), looked })
    }
}

/// True for `NAME` and `ORG/NAME`.
fn is_name(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let plain = |part: &&str| !part.is_empty() && **part != *"." && **part != *"..";
    let drive_or_worse = |c: char| matches!(c, '\\' | ':') || c.is_control();
    parts.len() <= 2 && parts.iter().all(plain) && !name.contains(drive_or_worse)
}

fn one(name: &str, mut found: Vec<PathBuf>) -> Result<Option<PathBuf>, ModelError> {
    if found.len() > 1 {
        found.sort();
        let candidates = found.iter().map(|p| p.display().to_string()).collect();
        return Err(ModelError::Ambiguous { name: name.into(), candidates });
    }
    Ok(found.pop())
}

/// Folders below `folder` whose path is `name` but for case in the last part.
/// A spelling that is exact excludes the others.
fn in_folder(folder: &Path, name: &str) -> Vec<PathBuf> {
    let exact = folder.join(name);
    if exact.is_dir() {
        return vec![exact];
    }
    let (parent, last) = match name.split_once('/') {
        Some((org, last)) => (folder.join(org), last),
        None => (folder.to_path_buf(), name),
    };
    entries(&parent)
        .filter(|(entry, path)| same(entry, last) && path.is_dir())
        .map(|e| e.1)
        .collect()
}

/// Entries of the cache for models called `name`.
fn in_cache(cache: &Path, name: &str) -> Vec<PathBuf> {
    let called = |entry: &str| {
        cached_name(entry).is_some_and(|full| {
            same(&full, name) || full.split_once('/').is_some_and(|(_, own)| same(own, name))
        })
    };
    entries(cache).filter(|(entry, _)| called(entry)).map(|(_, path)| path).collect()
}

/// The snapshot of a cache entry that its `main` branch points to.
fn snapshot(entry: &Path) -> Option<PathBuf> {
    let revision = fs::read_to_string(entry.join("refs").join("main")).ok()?;
    let revision = revision.trim();
    // A revision is one path component; anything else could leave the cache.
    if revision.is_empty() || revision.starts_with('.') || revision.contains(['/', '\\', '\0']) {
        return None;
    }
    let folder = entry.join("snapshots").join(revision);
    folder.is_dir().then_some(folder)
}

fn entries(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> {
    let named = |entry: fs::DirEntry| Some((entry.file_name().into_string().ok()?, entry.path()));
    fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).filter_map(named)
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}
