//! Where the user's own files are: the configuration folder and its contents.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::error::{Exit, Failure};

/// The signing key's file, if the configuration folder is known.
pub(super) fn key() -> Option<PathBuf> {
    Some(config_folder()?.join("key.pem"))
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

/// What to say if the configuration folder is not known.
pub(super) fn no_folder(option: &str) -> Failure {
    Failure::new(Exit::Usage, "the configuration folder is not known: HOME is not set")
        .hint(format!("name the file with {option}, or set ATTEST_CONFIG"))
}

/// Reads a file named on the command line.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| failed(path, &error))
}

/// A file that is written beside its place and moved there at the end, so that
/// an interrupted run leaves no half file. It is opened before the work, so that
/// a place that cannot be written to costs no work.
pub(super) struct Pending {
    path: PathBuf,
    partial: PathBuf,
    file: File,
}

impl Pending {
    /// Opens a file beside `path`. What is there already stays, unless it may be
    /// overwritten and is a plain file outside `kept`.
    pub(super) fn create(path: &Path, overwrite: bool, kept: &[&Path]) -> Result<Self, Failure> {
        let refused = |why: &str| Failure::new(Exit::Usage, format!("{} {why}", path.display()));
        let mut name = path.file_name().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(refused("names no file"));
        }
        if let Ok(there) = std::fs::symlink_metadata(path) {
            if !overwrite {
                return Err(refused("exists; nothing was written")
                    .hint("name another file with --out, or pass --overwrite"));
            }
            if !there.is_file() {
                return Err(refused("is not a plain file; nothing was written"));
            }
            let real = std::fs::canonicalize(path).map_err(|error| failed(path, &error))?;
            if kept.iter().any(|kept| real.starts_with(kept)) {
                return Err(refused("is read by this run; nothing was written"));
            }
        }
        name.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(name);
        let file = File::create(&partial).map_err(|error| failed(path, &error))?;
        Ok(Self { path: path.to_owned(), partial, file })
    }

    /// Writes the contents and moves the file to its place.
    pub(super) fn finish(mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file
            .write_all(bytes)
            .and_then(|()| self.file.sync_all())
            .and_then(|()| std::fs::rename(&self.partial, &self.path))
            .map_err(|error| failed(&self.path, &error))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Gone already if it was moved to its place.
        let _ = std::fs::remove_file(&self.partial);
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Usage, format!("{}: {error}", path.display()))
}
