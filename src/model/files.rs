//! The files of one model folder, and which symbolic links may be followed.
//!
//! A Hugging Face cache stores a model as `models--ORG--NAME/blobs/<digest>`
//! and `models--ORG--NAME/snapshots/<revision>/<file>`, each file a link to
//! `../../blobs/<digest>`. So links are followed, but only inside
//! `models--ORG--NAME`, or inside the folder itself where it is not such a
//! snapshot. File names come from this crate or from a checked index; they are
//! single path components.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::Read as _;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use memmap2::Mmap;

use super::ModelError;

/// A model folder with links resolved, and the root that its own links may not leave.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    root: PathBuf,
    /// Its name as it was asked for, before links are resolved.
    asked: Option<String>,
    /// `ORG/NAME` if the folder is a snapshot in a Hugging Face cache.
    cached_as: Option<String>,
}

impl Folder {
    /// Opens a folder; it may itself be reached through links.
    ///
    /// # Errors
    /// [`ModelError::Folder`] if it is not a folder.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let refused = |reason: String| ModelError::Folder { path: path.into(), reason };
        let real = fs::canonicalize(path).map_err(|e| refused(e.to_string()))?;
        if !real.is_dir() {
            return Err(refused("not a folder".into()));
        }
        let entry = real
            .parent()
            .filter(|p| p.file_name() == Some(OsStr::new("snapshots")))
            .and_then(Path::parent);
        let cached_as =
            entry.and_then(Path::file_name).and_then(OsStr::to_str).and_then(cached_name);
        let root = match (entry, &cached_as) {
            (Some(entry), Some(_)) => entry.to_path_buf(),
            _ => real.clone(),
        };
        let asked = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self { path: real, root, asked, cached_as })
    }

    /// The folder, links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `ORG/NAME` in a cache, elsewhere the folder's name as it was asked for: a
    /// link's own name, not its target's.
    pub fn model_name(&self) -> String {
        let own = || self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.cached_as.clone().or_else(|| self.asked.clone()).unwrap_or_else(own)
    }

    /// True if there is an entry of this name, even a link to nothing.
    pub fn exists(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path.join(name)).is_ok()
    }

    /// Reads a small file whole.
    ///
    /// # Errors
    /// [`ModelError`], naming the file.
    pub fn read(&self, name: &str) -> Result<ModelFile, ModelError> {
        let opened = self.open_file(name)?;
        let unreadable = |reason| ModelError::Unreadable { file: name.into(), reason };
        if opened.stamp.length > MAX_READ_BYTES {
            return Err(unreadable(format!(
                "{} bytes, more than {MAX_READ_BYTES}",
                opened.stamp.length
            )));
        }
        let mut bytes = Vec::new();
        (&opened.file).read_to_end(&mut bytes).map_err(|e| unreadable(e.to_string()))?;
        opened.with_bytes(Bytes::Read(bytes))
    }

    /// Opens a file after checking where it really is.
    ///
    /// # Errors
    /// [`ModelError`], naming the file.
    pub(super) fn open_file(&self, name: &str) -> Result<Opened, ModelError> {
        let path = self.path.join(name);
        let unreadable =
            |e: std::io::Error| ModelError::Unreadable { file: name.into(), reason: e.to_string() };
        let entry = match fs::symlink_metadata(&path) {
            Ok(entry) => entry,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(ModelError::MissingFile {
                    file: name.into(),
                    folder: self.path.clone(),
                });
            }
            Err(e) => return Err(unreadable(e)),
        };
        let link = if entry.is_symlink() { Some(self.follow(name, &path)?) } else { None };
        let real = link.as_ref().map_or(&path, |l| &l.real);
        // Before opening: opening a named pipe would wait for a writer.
        if !fs::metadata(real).map_err(unreadable)?.is_file() {
            return Err(ModelError::NotAFile { file: name.into() });
        }
        let file = File::open(real).map_err(unreadable)?;
        let opened_at = SystemTime::now();
        let stamp = Stamp::of(&file.metadata().map_err(unreadable)?);
        Ok(Opened { name: name.into(), path, file, opened_at, stamp, link })
    }

    fn follow(&self, name: &str, path: &Path) -> Result<Link, ModelError> {
        let target = fs::read_link(path).unwrap_or_default();
        let Ok(real) = fs::canonicalize(path) else {
            return Err(ModelError::DanglingLink { file: name.into(), target });
        };
        if !real.starts_with(&self.root) {
            let root = self.root.clone();
            return Err(ModelError::EscapingLink { file: name.into(), target, root });
        }
        Ok(Link { target, real })
    }
}

/// A file that is open, and where it came from.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) name: String,
    /// In the folder; a link is not resolved here.
    path: PathBuf,
    pub(super) file: File,
    opened_at: SystemTime,
    stamp: Stamp,
    link: Option<Link>,
}

impl Opened {
    /// Adds the content. A Git LFS pointer is refused here, so that no file can
    /// be parsed without this check.
    pub(super) fn with_bytes(self, bytes: Bytes) -> Result<ModelFile, ModelError> {
        let file = ModelFile { opened: self, bytes };
        if file.bytes().starts_with(LFS_POINTER) {
            return Err(ModelError::LfsPointer { file: file.opened.name });
        }
        Ok(file)
    }
}

/// A file of the model with its content. Parsing and hashing use the same bytes.
#[derive(Debug)]
pub struct ModelFile {
    opened: Opened,
    bytes: Bytes,
}

impl ModelFile {
    /// Its name in the folder.
    pub fn name(&self) -> &str {
        &self.opened.name
    }

    /// Its content.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(map) => map,
        }
    }

    /// What the link points to, as stored, if the file is a link.
    pub fn link(&self) -> Option<&Path> {
        self.opened.link.as_ref().map(|l| l.target.as_path())
    }

    /// The name of the blob behind the link, if it claims to be a SHA-256.
    ///
    /// A Hugging Face cache names large files by their SHA-256 (64 hex digits)
    /// and small ones by their Git object id (40 hex digits).
    pub(super) fn blob_name(&self) -> Option<&str> {
        let real = &self.opened.link.as_ref()?.real;
        let name = real.file_name()?.to_str()?;
        let is_digest = name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit());
        is_digest.then_some(name)
    }

    /// Whether its content is a map, as that of weight files.
    pub(crate) fn is_mapped(&self) -> bool {
        match self.bytes {
            Bytes::Mapped(_) => true,
            Bytes::Read(_) => false,
        }
    }

    /// What tells this file from every other and from itself after a change;
    /// `None` where the system has no inodes, or for a path that is no text.
    pub(super) fn identity(&self) -> Option<Identity> {
        let real = self.opened.link.as_ref().map_or(&self.opened.path, |link| &link.real);
        let (path, modified) = (real.to_str()?.to_owned(), self.opened.stamp.modified?);
        // Both times: a copy may bring an old time of modification along, and then
        // only the inode's time tells that the content came a moment ago.
        let settled = [Some(modified), self.opened.stamp.changed()].into_iter().all(|time| {
            let age = time.and_then(|time| self.opened.opened_at.duration_since(time).ok());
            age.is_some_and(|age| age >= SETTLED)
        });
        Some(Identity { path, stamp: self.opened.stamp.text()?, settled })
    }

    /// Checks that the file was not written to since it was opened.
    ///
    /// # Errors
    /// [`ModelError::Changed`] if its length or time of change differ.
    pub fn check_unchanged(&self) -> Result<(), ModelError> {
        let name = &self.opened.name;
        let now = self
            .opened
            .file
            .metadata()
            .map_err(|e| ModelError::Unreadable { file: name.clone(), reason: e.to_string() })?;
        if Stamp::of(&now) != self.opened.stamp {
            return Err(ModelError::Changed { file: name.clone() });
        }
        Ok(())
    }
}

/// See [`ModelFile::identity`].
pub(super) struct Identity {
    /// Where it is, links resolved.
    pub(super) path: String,
    /// Its length, times and inode.
    pub(super) stamp: String,
    /// Whether its last change was long enough before it was opened that every
    /// later one has another time.
    pub(super) settled: bool,
}

/// Content of a file.
#[derive(Debug)]
pub(super) enum Bytes {
    /// A copy.
    Read(Vec<u8>),
    /// A map; made in [`super::weights`] only.
    Mapped(Mmap),
}

#[derive(Debug)]
struct Link {
    target: PathBuf,
    real: PathBuf,
}

/// Enough to notice that an open file was written to.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Device, inode and time of the last change of the inode, which a program
    /// cannot set as it can set the time of modification.
    #[cfg(unix)]
    inode: (u64, u64, i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Stamp {
    /// When the inode was last changed; `None` where the system has no inodes.
    fn changed(&self) -> Option<SystemTime> {
        #[cfg(unix)]
        {
            let (_, _, seconds, nanos) = self.inode;
            let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
            SystemTime::UNIX_EPOCH.checked_add(since)
        }
        #[cfg(not(unix))]
        None
    }

    /// The stamp as text; `None` where the system has no inodes.
    fn text(&self) -> Option<String> {
        #[cfg(unix)]
        {
            let modified = self.modified?;
            let since = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
            let (device, inode, changed, changed_ns) = self.inode;
            let length = self.length;
            Some(format!(
                "{length} bytes, mtime {since} ns, device {device}, inode {inode}, \
                 ctime {changed} s {changed_ns} ns"
            ))
        }
        #[cfg(not(unix))]
        None
    }
}

/// `ORG/NAME` (or `NAME`) of a cache folder `models--ORG--NAME`.
pub(super) fn cached_name(folder: &str) -> Option<String> {
    let name = folder.strip_prefix("models--")?;
    (!name.is_empty()).then(|| name.replacen("--", "/", 1))
}

/// First line of a pointer file (Git LFS specification, version 1).
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1";

/// Files other than weights are read whole; the largest tokenizers in use are
/// a few dozen megabytes.
const MAX_READ_BYTES: u64 = 256 << 20;

/// Coarsest time stamps of file systems in use (FAT: two seconds).
const SETTLED: Duration = Duration::from_secs(2);
