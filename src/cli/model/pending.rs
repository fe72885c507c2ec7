//! A folder that appears whole or not at all at its place.
//!
//! A process that is killed leaves `NAME.PID.partial` beside it, which is safe to
//! delete.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::cli::error::{Exit, Failure};
use crate::cli::paths;

/// A folder being filled under another name beside its place; dropped before
/// [`Self::finish`], it is removed.
pub(super) struct PendingFolder {
    path: PathBuf,
    partial: PathBuf,
}

impl PendingFolder {
    /// Makes the folder under its temporary name. At its place there may be
    /// nothing, or an empty folder.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let refused = |why: &str| Failure::new(Exit::Usage, format!("{} {why}", path.display()));
        let Some(name) = path.file_name() else { return Err(refused("names no folder")) };
        match fs::symlink_metadata(path) {
            Ok(there) if !there.is_dir() => {
                return Err(refused("exists and is no folder; nothing was written"));
            }
            Ok(_) if fs::read_dir(path).map_err(|e| failed(path, &e))?.next().is_some() => {
                return Err(refused("exists and is not empty; nothing was written")
                    .hint("name another folder with --out"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(path, &error)),
        }
        let mut partial = name.to_owned();
        partial.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(partial);
        paths::require_parent(path)?;
        fs::create_dir(&partial).map_err(|error| failed(path, &error))?;
        Ok(Self { path: path.to_owned(), partial })
    }

    /// Fills one file and hands it to the disk.
    pub(super) fn file<T>(
        &self,
        name: &str,
        fill: impl FnOnce(&mut File) -> std::io::Result<T>,
    ) -> Result<T, Failure> {
        let path = self.partial.join(name);
        let write = || {
            let mut file = File::create_new(&path)?;
            let made = fill(&mut file)?;
            file.sync_all()?;
            Ok(made)
        };
        write().map_err(|error| failed(&self.path.join(name), &error))
    }

    /// Moves the folder to its place.
    pub(super) fn finish(self) -> Result<(), Failure> {
        // Not every system replaces an empty folder; one that was filled
        // meanwhile stays, here and in the rename.
        match fs::remove_dir(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => fs::rename(&self.partial, &self.path),
        }
        .map_err(|error| failed(&self.path, &error))
    }
}

impl Drop for PendingFolder {
    fn drop(&mut self) {
        // Gone already if it was moved.
        let _ = fs::remove_dir_all(&self.partial);
    }
}

/// The failure of a write; a full disk is one that the user can do something about.
pub(super) fn failed(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::new(Exit::Usage, format!("{}: {error}", path.display()));
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    if full.contains(&error.kind()) {
        return failure.hint("nothing was kept; make room, or name a folder elsewhere with --out");
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder = PendingFolder::create(&place.path().join("m")).unwrap();
        folder.file("config.json", |file| std::io::Write::write_all(file, b"{}")).unwrap();
        let full = || std::io::Error::from(ErrorKind::StorageFull);
        let failure = folder.file::<()>("shard", |_| Err(full())).unwrap_err();
        assert!(failure.message.ends_with("m/shard: no storage space"), "{}", failure.message);
        assert!(failure.hint.unwrap().starts_with("nothing was kept; make room"));
        drop(folder);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_appears_during_the_work_stays() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("m");
        let folder = PendingFolder::create(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("config.json"), "another's").unwrap();
        assert!(folder.finish().is_err());
        assert_eq!(fs::read(path.join("config.json")).unwrap(), b"another's");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "no partial folder is left");
    }
}
