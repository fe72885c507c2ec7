//! Which bytes define a model: path, length and SHA-256 of every file used.

use std::fs;
use std::path::Path;

use rayon::prelude::*;

use super::files::{Folder, ModelFile};
use super::weights::content_digest;
use super::{DigestCache, ModelError};
use crate::num::{Digest, sha256_of};

/// The files that define a model, by path in code-point order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Manifest {
    files: Vec<ManifestFile>,
}

/// One file of a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestFile {
    /// Path in the folder, `/` between components.
    pub path: String,
    /// Length (bytes).
    pub length: u64,
    /// SHA-256 of the content.
    pub sha256: Digest,
    /// What it links to, where it is a symbolic link. Not part of the digest: a
    /// model is the same in a cache and in a folder.
    pub link: Option<String>,
    /// Whether the digest was remembered and not computed.
    pub from_cache: bool,
}

impl Manifest {
    /// Digests the given files, several at a time. Digests of weight files come
    /// from `cache` where it knows them, and go there. `seen` is told, from several
    /// threads, how many bytes more are done; in the end, of all files.
    ///
    /// # Errors
    /// [`ModelError::BlobName`] if a cache blob is named by another digest than
    /// its own; [`ModelError::Changed`] if a file was written to meanwhile.
    pub fn of(
        files: &[&ModelFile],
        cache: Option<&DigestCache>,
        seen: Seen<'_>,
    ) -> Result<Self, ModelError> {
        let digested: Result<Vec<_>, ModelError> =
            files.par_iter().map(|file| digest(file, cache, seen)).collect();
        Ok(Self::from_files(digested?))
    }

    fn from_files(mut files: Vec<ManifestFile>) -> Self {
        // Rust orders strings by UTF-8 bytes, which is code-point order.
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Self { files }
    }

    /// The files, by path.
    pub fn files(&self) -> &[ManifestFile] {
        &self.files
    }

    /// How many digests were remembered and not computed.
    pub fn from_cache(&self) -> usize {
        self.files.iter().filter(|file| file.from_cache).count()
    }

    /// Finds a file by its path.
    pub fn file(&self, path: &str) -> Option<&ManifestFile> {
        self.files.iter().find(|f| f.path == path)
    }
}

/// Is told of bytes that were digested, or whose digest was remembered.
pub type Seen<'a> = &'a (dyn Fn(u64) + Sync);

fn digest(
    file: &ModelFile,
    cache: Option<&DigestCache>,
    seen: Seen<'_>,
) -> Result<ManifestFile, ModelError> {
    let bytes = file.bytes();
    // Small files are read again anyway.
    let cache = cache.filter(|_| file.is_mapped());
    let remembered = cache.and_then(|cache| cache.find(file));
    let found = match remembered {
        Some(found) => {
            seen(bytes.len() as u64);
            found
        }
        None => sha256_of(bytes.chunks(STRETCH_BYTES).inspect(|part| seen(part.len() as u64))),
    };
    file.check_unchanged()?;
    if let Some(cache) = cache.filter(|_| remembered.is_none()) {
        cache.remember(file, found);
    }
    if let Some(blob) = file.blob_name()
        && Digest::from_hex(blob) != Some(found)
    {
        return Err(ModelError::BlobName { file: file.name().into(), blob: blob.into(), found });
    }
    Ok(ManifestFile {
        path: file.name().into(),
        length: bytes.len() as u64,
        sha256: found,
        link: file.link().map(|target| target.to_string_lossy().into_owned()),
        from_cache: remembered.is_some(),
    })
}

/// The root digest that OpenSSF Model Signing v1.0 gives a whole folder.
///
/// SHA-256 over the digests of all regular files, sorted by path in code-point
/// order, without `.git`, `.gitignore`, `.gitattributes` and `.github` at the
/// top, nor the paths in `ignored` (a signature lying beside the model). It
/// covers every file but neither names nor lengths, so it is a second
/// identifier and never the identity; that is the manifest's digest in the
/// statement of a transcript.
///
/// Links are followed under the rule of [`super::files`]; the reference
/// implementation refuses them unless told otherwise.
///
/// Files that `known` lists are not read again.
///
/// # Errors
/// [`ModelError`] naming the entry that cannot be read, or is a folder that is
/// a link.
pub fn oms_root(folder: &Path, ignored: &[&str], known: &Manifest) -> Result<Digest, ModelError> {
    Ok(oms_root_of(&oms_files(folder, ignored, known)?))
}

/// One file that the root of OpenSSF Model Signing covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OmsFile {
    /// Path in the folder, `/` between components.
    pub path: String,
    /// SHA-256 of the content.
    pub sha256: Digest,
}

/// The files that [`oms_root`] covers, in its order.
///
/// # Errors
/// As [`oms_root`].
pub fn oms_files(
    folder: &Path,
    ignored: &[&str],
    known: &Manifest,
) -> Result<Vec<OmsFile>, ModelError> {
    let folder = Folder::open(folder)?;
    let mut paths = Vec::new();
    walk(&folder, "", ignored, &mut paths)?;
    paths.sort();
    let digest = |path: String| {
        let sha256 = match known.file(&path) {
            Some(file) => file.sha256,
            None => content_digest(&folder, &path)?,
        };
        Ok(OmsFile { path, sha256 })
    };
    paths.into_par_iter().map(digest).collect()
}

/// The root over these files, in this order.
pub fn oms_root_of(files: &[OmsFile]) -> Digest {
    sha256_of(files.iter().map(|file| file.sha256.0.as_slice()))
}

fn walk(
    folder: &Folder,
    below: &str,
    ignored: &[&str],
    paths: &mut Vec<String>,
) -> Result<(), ModelError> {
    let here = folder.path().join(below);
    let refused = |reason: String| ModelError::Folder { path: here.clone(), reason };
    for entry in fs::read_dir(&here).map_err(|e| refused(e.to_string()))? {
        let entry = entry.map_err(|e| refused(e.to_string()))?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| refused(format!("{name:?} is not UTF-8")))?;
        let path = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
        if (below.is_empty() && OMS_IGNORED.contains(&name)) || ignored.contains(&path.as_str()) {
            continue;
        }
        if entry.file_type().map_err(|e| refused(e.to_string()))?.is_dir() {
            walk(folder, &path, ignored, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

/// How much is digested between two reports of progress: some hundredths of a second.
const STRETCH_BYTES: usize = 32 << 20;

/// Default ignore list of OpenSSF Model Signing v1.0, top level only.
const OMS_IGNORED: [&str; 4] = [".git", ".gitignore", ".gitattributes", ".github"];

/// Where the reference tool of OpenSSF Model Signing writes a signature unless
/// told otherwise (`model_signing` 1.1.1, option `--signature`); it leaves that
/// file out of the root.
pub const OMS_SIGNATURE: &str = "model.sig";
