//! Where a transcript's bytes are: in memory, or in a file that is read piece by piece.
//!
//! Sections have hundreds of megabytes. Of a file only item 0 is held; what is read
//! again later is checked against the digest of the first reading, because a file can
//! change meanwhile.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;

use super::TranscriptError;
use super::statement::MAX_STATEMENT_LEN_BYTES;

/// The bytes of a transcript.
#[derive(Debug)]
pub(super) enum Source {
    /// All of them.
    Memory(Vec<u8>),
    /// A file, and what is held of its start.
    File { file: File, len_bytes: u64, held: Vec<u8> },
}

impl Source {
    /// Takes a file; holds as much of its start as item 0 can have.
    pub(super) fn file(mut file: File) -> Result<Self, TranscriptError> {
        let failed = |error: std::io::Error| unreadable(0, &error);
        let len_bytes = file.metadata().map_err(failed)?.len();
        let mut held = Vec::new();
        let most = (MAX_STATEMENT_LEN_BYTES + MOST_BESIDE_STATEMENT) as u64;
        file.by_ref().take(most).read_to_end(&mut held).map_err(failed)?;
        Ok(Self::File { file, len_bytes, held })
    }

    /// Lets go of what follows item 0.
    pub(super) fn keep_only(&mut self, end: usize) {
        match self {
            Self::Memory(_) => {}
            Self::File { held, .. } => {
                held.truncate(end);
                held.shrink_to_fit();
            }
        }
    }

    /// What is held: everything, or the start of the file.
    pub(super) fn held(&self) -> &[u8] {
        match self {
            Self::Memory(bytes) => bytes,
            Self::File { held, .. } => held,
        }
    }

    /// Length of the whole (bytes).
    pub(super) fn len_bytes(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { len_bytes, .. } => *len_bytes,
        }
    }

    /// The bytes of a range, which lies within [`Self::len_bytes`].
    pub(super) fn read(&self, range: Range<u64>) -> Result<Cow<'_, [u8]>, TranscriptError> {
        let short = || unreadable(range.start, &std::io::ErrorKind::UnexpectedEof.into());
        match self {
            Self::Memory(bytes) => {
                let within = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
                let bytes = within.and_then(|(start, end)| bytes.get(start..end));
                bytes.map(Cow::Borrowed).ok_or_else(short)
            }
            Self::File { file, .. } => {
                let length = usize::try_from(range.end.saturating_sub(range.start));
                let mut bytes = vec![0; length.map_err(|_| short())?];
                let mut file = file;
                let read = file
                    .seek(SeekFrom::Start(range.start))
                    .and_then(|_| file.read_exact(&mut bytes));
                read.map_err(|error| unreadable(range.start, &error))?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

fn unreadable(offset: u64, error: &std::io::Error) -> TranscriptError {
    TranscriptError::Unreadable { offset, reason: error.to_string() }
}

/// Bytes of item 0 that are not the statement, at most: heads, the protected header,
/// the signature.
const MOST_BESIDE_STATEMENT: usize = 1024;
