//! Bytes put aside while a model runs: in memory at first, then in a file.
//!
//! Logits have 300 KB a token and are known last row first or layer by layer, while the
//! statement that precedes them in the file is known at the end.

use std::io::{Read as _, Result, Seek as _, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use tempfile::SpooledTempFile;

/// Bytes put aside, and got back in any order. The file has no name, so that it is gone
/// with the process.
pub(super) struct Spool {
    file: SpooledTempFile,
    end: u64,
}

impl Spool {
    /// Makes an empty one; what does not fit in memory goes to a file in `folder`, or
    /// where the system keeps temporary files.
    pub(super) fn new(folder: Option<&Path>) -> Self {
        let file = match folder {
            Some(folder) => tempfile::spooled_tempfile_in(MOST_IN_MEMORY, folder),
            None => tempfile::spooled_tempfile(MOST_IN_MEMORY),
        };
        Self { file, end: 0 }
    }

    /// Puts bytes aside; returns where they are.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<Range<u64>> {
        let start = self.end;
        self.file.write_all(bytes)?;
        self.end += bytes.len() as u64;
        Ok(start..self.end)
    }

    /// Copies ranges, in this order. Nothing can be appended after.
    pub(super) fn copy(&mut self, ranges: &[Range<u64>], out: &mut dyn Write) -> Result<()> {
        let mut bytes = Vec::new();
        let mut at = None;
        for range in ranges {
            if at != Some(range.start) {
                self.file.seek(SeekFrom::Start(range.start))?;
            }
            bytes.resize((range.end - range.start) as usize, 0);
            self.file.read_exact(&mut bytes)?;
            out.write_all(&bytes)?;
            at = Some(range.end);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Spool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Spool({} bytes)", self.end)
    }
}

/// Bytes before a file is made.
const MOST_IN_MEMORY: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_come_back_in_any_order_from_memory_and_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        for size in [3, MOST_IN_MEMORY] {
            let mut spool = Spool::new(Some(folder.path()));
            let pieces = [b'a', b'b', b'c'].map(|letter| vec![letter; size]);
            let places = [0, 1, 2].map(|piece: usize| spool.append(&pieces[piece]).unwrap());
            let order = [2, 0, 1].map(|piece: usize| places[piece].clone());
            let mut out = Vec::new();
            spool.copy(&order, &mut out).unwrap();
            assert!(out == [&pieces[2][..], &pieces[0], &pieces[1]].concat(), "{size}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
    }
}
