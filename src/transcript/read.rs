//! Reading a transcript: item 0, the sections, the openings, and nothing after them.
//!
//! A section is read once, a row at a time: its digest, the digests of its rows and
//! the root come from the same bytes.

use std::fs::File;
use std::ops::Range;

use super::cose::Envelope;
use super::opening::Opening;
use super::source::Source;
use super::statement::{LogitsMode, Section, TraceMode};
use super::{LOGITS_SECTION, Statement, Transcript, TranscriptError, leaf, strict};
use crate::num::{Digest, Hashing};

impl Transcript {
    /// Reads a file that is in memory: item 0, then for every section that the statement
    /// lists its contents or null, then the openings if there are any, and no more.
    ///
    /// # Errors
    /// [`TranscriptError`] of class `Malformed`.
    pub fn parse(file: Vec<u8>) -> Result<Self, TranscriptError> {
        Self::read(Source::Memory(file))
    }

    /// As [`Self::parse`], of a file that stays where it is: item 0 and the digests of
    /// rows are held, one row is read at a time.
    ///
    /// # Errors
    /// [`TranscriptError`] of class `Malformed` or `Unreadable`.
    pub fn open(file: File) -> Result<Self, TranscriptError> {
        Self::read(Source::file(file)?)
    }

    fn read(mut source: Source) -> Result<Self, TranscriptError> {
        let envelope = Envelope::open(source.held())?;
        let payload = envelope.payload.clone();
        let statement = Statement::from_bytes(&source.held()[payload.clone()], payload.start)?;
        source.keep_only(envelope.end);

        let end = source.len_bytes();
        let (mut logits_digests, mut trace_digests) = (None, None);
        let mut sections = Vec::with_capacity(statement.sections.len());
        let mut at = envelope.end as u64;
        for (index, section) in statement.sections.iter().enumerate() {
            let range = section_at(&source, at, index, section)?;
            at = range.as_ref().map_or(at + 1, |range| range.end);
            if let Some(range) = &range {
                let digests = rows(&source, range.clone(), &statement, section)?;
                match section.kind.as_str() {
                    LOGITS_SECTION => logits_digests = Some(digests),
                    _ => trace_digests = Some(digests),
                }
            }
            sections.push(range);
        }
        let mut opening = None;
        if at != end && statement.trace.mode == TraceMode::Cells {
            let (found, after) = Opening::read(&source, at)?;
            (opening, at) = (Some(found), after);
        }
        if at != end {
            let (offset, count) = (as_usize(at), as_usize(end - at));
            return Err(TranscriptError::TrailingBytes { offset, count });
        }
        if let Some(rows) = &logits_digests {
            let root = leaf::logits_root(&statement, rows.iter().copied());
            require(LOGITS_SECTION, "root", statement.logits.root, root)?;
        }
        Ok(Self { source, envelope, statement, sections, logits_digests, trace_digests, opening })
    }
}

/// Where the contents of a section are that starts at `at`; `None` if there is null in
/// its place.
fn section_at(
    source: &Source,
    at: u64,
    index: usize,
    section: &Section,
) -> Result<Option<Range<u64>>, TranscriptError> {
    let (end, kind) = (source.len_bytes(), section.kind.clone());
    if at == end {
        return Err(TranscriptError::SectionMissing { offset: as_usize(at), index, kind });
    }
    let head = source.read(at..end.min(at + strict::MAX_HEAD_LEN_BYTES as u64))?;
    if head.first() == Some(&NULL) {
        return Ok(None);
    }
    let range = strict::byte_string_of(&head, at, end)?;
    let (expected, found) = (section.len_bytes, range.end - range.start);
    if expected != found {
        let offset = as_usize(at);
        return Err(TranscriptError::SectionLength { offset, kind, expected, found });
    }
    Ok(Some(range))
}

/// Digests of a section's rows, or the digests that are its rows; its own digest is
/// checked.
fn rows(
    source: &Source,
    range: Range<u64>,
    statement: &Statement,
    section: &Section,
) -> Result<Vec<Digest>, TranscriptError> {
    let is_logits = section.kind == LOGITS_SECTION;
    let values = is_logits && statement.logits.mode == LogitsMode::Full;
    // The statement's own rules make the length a multiple of the count.
    let width = (range.end - range.start).checked_div(section.leaf_count).unwrap_or(0);
    let (mut whole, mut row) = (Hashing::default(), Hashing::default());
    // Bytes that the row under way still lacks.
    let mut left = width;
    let mut digests = Vec::new();
    let mut at = range.start;
    while at < range.end {
        // No more at once, however long a row is said to be.
        let piece = source.read(at..range.end.min(at + PIECE_LEN_BYTES))?;
        at += piece.len() as u64;
        whole.update(&piece);
        if !values {
            digests.extend(piece.chunks_exact(32).filter_map(|d| d.try_into().ok()).map(Digest));
            continue;
        }
        let mut rest = &piece[..];
        while !rest.is_empty() {
            let count = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let (own, later) = rest.split_at(count);
            row.update(own);
            (rest, left) = (later, left - count as u64);
            if left == 0 {
                digests.push(std::mem::take(&mut row).finish());
                left = width;
            }
        }
    }
    require(&section.kind, "sha256", section.sha256, whole.finish())?;
    Ok(digests)
}

fn require(
    kind: &str,
    commitment: &'static str,
    expected: Digest,
    found: Digest,
) -> Result<(), TranscriptError> {
    if expected == found {
        return Ok(());
    }
    let kind = kind.to_owned();
    Err(TranscriptError::SectionMismatch { kind, commitment, expected, found })
}

fn as_usize(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// In place of a section that is withheld (RFC 8949 section 3.3).
pub(super) const NULL: u8 = 0xf6;

/// Bytes that are read at once; a multiple of a digest's length.
const PIECE_LEN_BYTES: u64 = 1 << 20;
