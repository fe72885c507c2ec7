//! Where the user's own files are: the configuration folder and its contents.

use std::path::PathBuf;

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
pub(super) fn read(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", path.display())))
}

/// Writes a file next to its place and moves it there, so that an interrupted
/// write leaves no half file.
pub(super) fn write(path: &std::path::Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::new(Exit::Usage, format!("{}: {error}", path.display()));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path));
    written.inspect_err(|_| drop(std::fs::remove_file(&partial))).map_err(failed)
}
