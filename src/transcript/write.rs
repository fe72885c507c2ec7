//! Writing a transcript's file: with its sections, without them, or with openings.
//!
//! All three have the same item 0, so they are the same transcript.

use std::io::{self, Write};

use super::cells::{Cell, Layout, Opened, drawn};
use super::cose::Envelope;
use super::key::PrivateKey;
use super::opening::{Draw, Opening};
use super::read::NULL;
use super::record::Recording;
use super::wire::byte_string_head;
use super::{Statement, Transcript, TranscriptError, multiproof};
use crate::num::Digest;

/// Signs a statement; returns item 0.
///
/// # Errors
/// Whatever is wrong with the statement, so that nothing is signed that cannot be read.
pub fn item_0(statement: &Statement, key: &PrivateKey) -> Result<Vec<u8>, TranscriptError> {
    Ok(Envelope::seal(&statement.to_bytes()?, key))
}

/// The file that withholds every section: item 0, and null for each of them.
pub fn statement_alone(item_0: &[u8], sections: usize) -> Vec<u8> {
    let mut file = item_0.to_vec();
    file.resize(file.len() + sections, NULL);
    file
}

/// Writes the file that has everything: item 0, the sections, and for a trace of cells
/// every row.
///
/// # Errors
/// The system's.
pub fn whole(item_0: &[u8], recording: &mut Recording, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(item_0)?;
    for index in 0..recording.sections.len() {
        out.write_all(&byte_string_head(recording.sections[index].len_bytes))?;
        recording.write_section(index, out)?;
    }
    if let Some(length) = recording.cells_len_bytes() {
        out.write_all(&Opening::head(None, length))?;
        recording.write_cells(out)?;
        out.write_all(&Opening::tail(&[]))?;
    }
    Ok(())
}

/// Why cells cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file at hand does not have them all.
    #[error("{reason}")]
    NotKept {
        /// What is wrong with it.
        reason: String,
    },
    /// The result cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Writes the file that withholds every section and opens the cells of a draw. `kept` is
/// the file that has everything; returns the cells.
///
/// # Errors
/// [`OpenError`].
pub fn opened(
    kept: &Transcript,
    layout: &Layout,
    draw: &Draw,
    out: &mut dyn Write,
) -> Result<Vec<Cell>, OpenError> {
    let not_kept = |reason: String| OpenError::NotKept { reason };
    if kept.opening().is_some_and(|opening| opening.draw.is_some()) {
        return Err(not_kept("it opens a draw itself, not every cell".into()));
    }
    let rows = Opened::check_all(kept, layout).map_err(|error| not_kept(error.to_string()))?;
    let hashes = rows.hashes(layout);
    let cells = drawn(kept.digest(), draw, layout.positions, layout.layers);
    let needed = layout.needed(&cells);
    let nodes: Vec<Digest> = multiproof::nodes(&hashes, &needed);

    let chosen = || (0..).zip(&needed).filter(|(_, needed)| **needed).map(|(index, _)| index);
    let length = chosen().map(|index: u64| layout.len_bytes(index)).sum();
    out.write_all(&statement_alone(kept.item_0(), kept.statement().sections.len()))?;
    out.write_all(&Opening::head(Some(draw), length))?;
    for index in chosen() {
        out.write_all(&rows.content(kept, index).map_err(not_kept)?)?;
    }
    out.write_all(&Opening::tail(&nodes))?;
    Ok(cells.into_iter().collect())
}
