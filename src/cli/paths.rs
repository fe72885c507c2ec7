//! Where the user's own files are: the configuration folder, its contents, the cache.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write};
use std::path::{Path, PathBuf};

use super::error::{Exit, Failure};
use crate::verify::trust::Role;

/// The file of the key that `attest run` signs with, if the configuration folder is known.
pub(super) fn key() -> Option<PathBuf> {
    key_of(Role::Prover)
}

/// The file of a key for a role, if the configuration folder is known.
pub(super) fn key_of(role: Role) -> Option<PathBuf> {
    let name = match role {
        Role::Prover => "key.pem",
        Role::Auditor => "auditor.pem",
        Role::Publisher => "publisher.pem",
    };
    Some(config_folder()?.join(name))
}

/// The trust store's file, if the configuration folder is known.
pub(super) fn trust() -> Option<PathBuf> {
    Some(config_folder()?.join("trust.toml"))
}

/// `$ATTEST_CONFIG`, or the system's place for a user's configuration.
fn config_folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("ATTEST_CONFIG").filter(|folder| !folder.is_empty()) {
        return Some(folder.into());
    }
    directories::ProjectDirs::from("", "", "attest").map(|dirs| dirs.config_dir().to_path_buf())
}

/// Where digests of weight files are kept, if the cache folder is known.
pub(super) fn digest_cache() -> Option<PathBuf> {
    let folders = directories::ProjectDirs::from("", "", "attest")?;
    Some(folders.cache_dir().join("digests.json"))
}

/// What to say if the configuration folder is not known.
pub(super) fn no_folder(option: &str) -> Failure {
    Failure::new(Exit::Usage, "the configuration folder is not known: HOME is not set")
        .hint(format!("name the file with {option}, or set ATTEST_CONFIG"))
}

/// Reads a file named on the command line.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| failed(path, &error))
}

/// Opens a file named on the command line, which is no folder.
pub(super) fn open(path: &Path) -> Result<File, Failure> {
    let failed = |error: std::io::Error| failed(path, &error);
    let file = File::open(path).map_err(failed)?;
    match file.metadata().map_err(failed)?.is_dir() {
        false => Ok(file),
        // Some systems open one and refuse only to read it.
        true => Err(failed(ErrorKind::IsADirectory.into())),
    }
}

/// Requires that a file named on the command line can be opened, and is no folder.
pub(super) fn openable(path: &Path) -> Result<(), Failure> {
    // A pipe must not be opened in vain.
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => Ok(()),
        Ok(_) | Err(_) => open(path).map(|_| ()),
    }
}

/// Reads a file named on the command line, or standard input if it is named `-`.
pub(super) fn read_or_stdin(path: &Path) -> Result<Vec<u8>, Failure> {
    if path != Path::new("-") {
        return read(path);
    }
    let mut bytes = Vec::new();
    match std::io::stdin().lock().read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(failed(Path::new("standard input"), &error)),
    }
}

/// A place for a result, checked before the work, so that one that cannot be
/// written to costs no work.
pub(super) struct Pending {
    path: PathBuf,
    /// The same without links in its folder.
    real: PathBuf,
    overwrite: bool,
    /// Whether only its owner may read the file.
    private: bool,
}

impl Pending {
    /// Checks that a file can be made at `path`. What is there already stays,
    /// unless it may be overwritten and is a plain file; in a folder that the run
    /// reads, or in place of a file that it reads (`kept`), nothing is written.
    pub(super) fn create(path: &Path, overwrite: bool, kept: &[&Path]) -> Result<Self, Failure> {
        let refused = |why: &str| Failure::new(Exit::Usage, format!("{} {why}", path.display()));
        let Some(name) = path.file_name() else { return Err(refused("names no file")) };
        if let Ok(there) = std::fs::symlink_metadata(path) {
            if !overwrite {
                return Err(exists(path));
            }
            if !there.is_file() {
                return Err(refused("is not a plain file; nothing was written"));
            }
        }
        let folder = folder_of(path);
        require_parent(path)?;
        let real = std::fs::canonicalize(folder).map_err(|error| failed(path, &error))?.join(name);
        if kept.iter().any(|kept| real.starts_with(kept)) {
            return Err(refused("is read by this run, or in the model's folder")
                .hint("name another file with --out"));
        }
        if overwrite && holds_private_key(path) {
            return Err(refused("is a private key, which is never written over"));
        }
        let pending = Self { path: path.to_owned(), real, overwrite, private: false };
        let partial = pending.partial();
        File::create(&partial).map_err(|error| failed(path, &error))?;
        std::fs::remove_file(&partial).map_err(|error| failed(path, &error))?;
        Ok(pending)
    }

    /// Lets only the owner read the file, where the system knows owners.
    pub(super) fn for_owner_only(self) -> Self {
        Self { private: true, ..self }
    }

    /// Whether another result is to have the same place.
    pub(super) fn is_at(&self, other: &Self) -> bool {
        self.real == other.real
    }

    /// The place.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the contents beside the place and moves them there, so that an
    /// interrupted write leaves no half file.
    pub(super) fn finish(self, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path.clone();
        self.write(|out| out.write_all(bytes).map_err(|error| failed(&path, &error))).map(|_| ())
    }

    /// As [`Self::finish`], with contents that are written piece by piece; returns their
    /// length.
    pub(super) fn write(
        self,
        contents: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let staged = self.stage(contents)?;
        let length = staged.len_bytes;
        staged.take()?;
        Ok(length)
    }

    /// Writes the contents beside the place.
    pub(super) fn stage(
        self,
        contents: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<Staged, Failure> {
        let partial = self.partial();
        let written = create(&partial, self.private)
            .map_err(|error| failed(&self.path, &error))
            .and_then(|file| fill(file, &self.path, contents));
        let len_bytes = written.inspect_err(|_| drop(std::fs::remove_file(&partial)))?;
        Ok(Staged { pending: self, partial, len_bytes })
    }

    fn partial(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        self.path.with_file_name(name)
    }
}

/// A result that is written in full, beside its place. Unless it is moved there, it goes.
pub(super) struct Staged {
    pending: Pending,
    partial: PathBuf,
    /// Its length.
    pub(super) len_bytes: u64,
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Gone already if it was renamed.
        let _ = std::fs::remove_file(&self.partial);
    }
}

impl Staged {
    /// Moves it to its place.
    pub(super) fn take(self) -> Result<(), Failure> {
        let (partial, path) = (&self.partial, &self.pending.path);
        let moved = if self.pending.overwrite {
            std::fs::rename(partial, path)
        } else {
            // Unlike a rename, a link does not replace what appeared meanwhile.
            match std::fs::hard_link(partial, path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
                // A file system without links: the last look is a moment ago.
                Err(_) if !path.exists() => std::fs::rename(partial, path),
                other => other,
            }
        };
        moved.map_err(|error| {
            if error.kind() == ErrorKind::AlreadyExists {
                exists(path)
            } else {
                failed(path, &error)
            }
        })
    }
}

/// Makes a file, or empties one.
fn create(path: &Path, private: bool) -> std::io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    options.open(path)
}

/// Writes the contents of a file; returns their length.
fn fill(
    file: File,
    path: &Path,
    contents: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut out = std::io::BufWriter::new(file);
    contents(&mut out)?;
    let file = out.into_inner().map_err(|error| failed(path, error.error()))?;
    file.sync_all()
        .and_then(|()| file.metadata())
        .map_err(|error| failed(path, &error))
        .map(|m| m.len())
}

/// Whether a file looks like a private key in one of the forms that are read.
fn holds_private_key(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(KEY_LEN_BYTES).read_to_end(&mut start));
    let text = String::from_utf8_lossy(&start);
    let is_jwk = || {
        let json: Result<serde_json::Value, _> = serde_json::from_str(&text);
        json.is_ok_and(|json| json.get("kty").is_some() && json.get("d").is_some())
    };
    read.is_ok() && (text.contains("PRIVATE KEY-----") || is_jwk())
}

/// More than any private key has.
const KEY_LEN_BYTES: u64 = 1 << 14;

/// The folder that a file is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// `path` with a number before its extension: `t-1.cbor` for `t.cbor`.
pub(super) fn numbered(path: &Path, number: usize) -> PathBuf {
    inserted(path, &format!("-{number}"))
}

/// Where `run` keeps everything: `t.kept.cbor` for `t.cbor`.
pub(super) fn kept_beside(path: &Path) -> PathBuf {
    inserted(path, ".kept")
}

/// `path` with something before its extension.
fn inserted(path: &Path, what: &str) -> PathBuf {
    let Some(stem) = path.file_stem() else { return path.to_owned() };
    let mut name = stem.to_owned();
    name.push(what);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Refuses a place in a folder that is not there, by the folder's name.
pub(super) fn require_parent(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.exists()) {
        None => Ok(()),
        Some(folder) => {
            let message =
                format!("{}: the folder {} is not there", path.display(), folder.display());
            Err(Failure::new(Exit::Usage, message).hint("make it first; nothing was written"))
        }
    }
}

fn exists(path: &Path) -> Failure {
    Failure::new(Exit::Usage, format!("{} exists; nothing was written", path.display()))
        .hint("name another file with --out, or pass --overwrite")
}

/// What to say of a file that cannot be read or written.
pub(super) fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Usage, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_goes_before_the_extension() {
        let cases = [
            ("transcript.cbor", "transcript-1.cbor"),
            ("a.b/t.tar.cbor", "a.b/t.tar-1.cbor"),
            ("a.b/t", "a.b/t-1"),
            (".cbor", ".cbor-1"),
            ("..", ".."),
        ];
        for (path, expected) in cases {
            assert_eq!(numbered(Path::new(path), 1), Path::new(expected));
        }
    }

    #[test]
    fn what_appears_during_the_work_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.cbor");
        let pending = Pending::create(&path, false, &[]).unwrap();
        std::fs::write(&path, "another run's").unwrap();
        assert!(pending.finish(b"ours").unwrap_err().message.contains("exists"));
        assert_eq!(std::fs::read(&path).unwrap(), b"another run's");
        let pending = Pending::create(&path, true, &[]).unwrap();
        pending.finish(b"ours").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"ours");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no partial file is left");
    }
}
