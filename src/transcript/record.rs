//! Collects what a run commits to, in whatever order it is computed.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use crate::num::{Digest, Dtype, Hashing, Tensor, sha256};

use super::leaf::{LeafHeader, logits_header};
use super::spool::Spool;
use super::statement::{Logits, LogitsMode, Section, Trace, TraceMode};
use super::{LOGITS_SECTION, TRACE_SECTION, cells, merkle};

/// Why an output cannot be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The same place twice.
    #[error("{kind} of pass {pass}, index {index} are recorded twice")]
    Twice {
        /// `logits` or `trace`.
        kind: &'static str,
        /// The pass.
        pass: u64,
        /// Position or step index.
        index: u64,
    },
    /// A row of logits unlike the others.
    #[error(
        "logits of pass {pass}, position {position} are {found} {dtype}, expected {vocab} {expected}"
    )]
    Row {
        /// The pass.
        pass: u64,
        /// The position.
        position: u64,
        /// Elements found.
        found: u64,
        /// Type found.
        dtype: &'static str,
        /// Elements expected.
        vocab: u64,
        /// Type expected.
        expected: &'static str,
    },
    /// A step output in a mode that has none of this kind.
    #[error("a step output is recorded in trace mode {mode}")]
    NotTraced {
        /// The mode.
        mode: &'static str,
    },
    /// What was recorded could not be put aside.
    #[error("outputs could not be put aside in a temporary file: {reason}")]
    Spool {
        /// The system's reason.
        reason: String,
    },
}

/// Collects leaves while a model runs.
///
/// Passes may run in any order and layer by layer; leaves are put in order of
/// (pass, position) and (pass, step), those of cells of (position, step), at the end.
#[derive(Debug)]
pub struct Recorder {
    logits_mode: LogitsMode,
    trace_mode: TraceMode,
    vocab: u64,
    dtype: Dtype,
    spool: Spool,
    logits: BTreeMap<(u64, u64), Row>,
    trace: BTreeMap<(u64, u64), Boundary>,
}

#[derive(Debug)]
struct Row {
    digest: Digest,
    /// Its bytes in the spool, where they are kept.
    place: Option<Range<u64>>,
}

#[derive(Debug)]
struct Boundary {
    leaf: Digest,
    content: Digest,
    /// Its bytes in the spool, where they are kept.
    place: Option<Range<u64>>,
}

impl Recorder {
    /// Makes an empty recorder for rows of `vocab` elements.
    pub fn new(logits_mode: LogitsMode, trace_mode: TraceMode, vocab: u64, dtype: Dtype) -> Self {
        Self::in_folder(None, logits_mode, trace_mode, vocab, dtype)
    }

    /// As [`Self::new`]; what does not fit in memory is put aside in this folder.
    pub fn in_folder(
        folder: Option<&Path>,
        logits_mode: LogitsMode,
        trace_mode: TraceMode,
        vocab: u64,
        dtype: Dtype,
    ) -> Self {
        let (logits, trace, spool) = (BTreeMap::new(), BTreeMap::new(), Spool::new(folder));
        Self { logits_mode, trace_mode, vocab, dtype, spool, logits, trace }
    }

    /// Records the logits of one position.
    ///
    /// # Shape
    /// `row`: `[vocab]` or `[1, vocab]`.
    ///
    /// # Errors
    /// [`RecordError::Row`], [`RecordError::Twice`], [`RecordError::Spool`].
    pub fn logits(&mut self, pass: u64, position: u64, row: &Tensor) -> Result<(), RecordError> {
        let found = row.shape().iter().product::<usize>() as u64;
        if (found, row.dtype()) != (self.vocab, self.dtype) {
            let (dtype, expected) = (row.dtype().name(), self.dtype.name());
            let vocab = self.vocab;
            return Err(RecordError::Row { pass, position, found, dtype, vocab, expected });
        }
        let bytes = row.to_le_bytes();
        let digest = sha256(&[&bytes]);
        let place = match self.logits_mode {
            LogitsMode::Full => Some(self.spool.append(&bytes).map_err(not_put_aside)?),
            LogitsMode::Hash => None,
        };
        match self.logits.insert((pass, position), Row { digest, place }) {
            None => Ok(()),
            Some(_) => Err(RecordError::Twice { kind: LOGITS_SECTION, pass, index: position }),
        }
    }

    /// Records the output of one step.
    ///
    /// # Errors
    /// [`RecordError::NotTraced`], [`RecordError::Twice`].
    pub fn step(
        &mut self,
        pass: u64,
        index: u64,
        name: &str,
        output: &Tensor,
    ) -> Result<(), RecordError> {
        match self.trace_mode {
            mode @ (TraceMode::None | TraceMode::Cells) => {
                return Err(RecordError::NotTraced { mode: mode.word() });
            }
            TraceMode::Layers | TraceMode::Steps => {}
        }
        let shape: Vec<u64> = output.shape().iter().map(|&length| length as u64).collect();
        let content = output.content_digest();
        let dtype = output.dtype();
        let leaf = LeafHeader { kind: TRACE_SECTION, pass, index, name, dtype, shape: &shape }
            .hash(content);
        match self.trace.insert((pass, index), Boundary { leaf, content, place: None }) {
            None => Ok(()),
            Some(_) => Err(RecordError::Twice { kind: TRACE_SECTION, pass, index }),
        }
    }

    /// Records the rows of one step's output, the first of them at position `start`.
    ///
    /// # Shape
    /// `output`: `[positions, columns]`.
    ///
    /// # Errors
    /// [`RecordError::NotTraced`], [`RecordError::Twice`], [`RecordError::Spool`].
    pub fn rows(
        &mut self,
        (pass, start): (u64, u64),
        index: u64,
        name: &str,
        output: &Tensor,
    ) -> Result<(), RecordError> {
        match self.trace_mode {
            TraceMode::Cells => {}
            mode @ (TraceMode::None | TraceMode::Layers | TraceMode::Steps) => {
                return Err(RecordError::NotTraced { mode: mode.word() });
            }
        }
        let columns = output.shape().last().copied().unwrap_or(1);
        let width = (columns * output.dtype().size_bytes()).max(1);
        for (position, row) in (start..).zip(output.to_le_bytes().chunks(width)) {
            let content = sha256(&[row]);
            let shape = [columns as u64];
            let header = cells::header(pass, position, name, output.dtype(), &shape);
            let leaf = header.hash(content);
            let place = Some(self.spool.append(row).map_err(not_put_aside)?);
            let boundary = Boundary { leaf, content, place };
            if self.trace.insert((position, index), boundary).is_some() {
                return Err(RecordError::Twice { kind: cells::CELLS, pass, index });
            }
        }
        Ok(())
    }

    /// Builds the commitments and the list of sections.
    ///
    /// # Errors
    /// [`RecordError::Spool`].
    pub fn finish(mut self) -> Result<Recording, RecordError> {
        let vocab = [self.vocab];
        let leaf = |(&(pass, position), row): (&(u64, u64), &Row)| {
            logits_header(pass, position, self.dtype, &vocab).hash(row.digest)
        };
        let leaves: Vec<Digest> = self.logits.iter().map(leaf).collect();
        let logits = Logits {
            mode: self.logits_mode,
            count: leaves.len() as u64,
            vocab: self.vocab,
            dtype: self.dtype,
            root: merkle::root(&leaves),
        };
        let rows = self.logits.values();
        let rows = match self.logits_mode {
            LogitsMode::Full => Contents::Spooled(rows.filter_map(|r| r.place.clone()).collect()),
            LogitsMode::Hash => Contents::Bytes(rows.flat_map(|row| row.digest.0).collect()),
        };
        let mut sections = vec![rows.section(LOGITS_SECTION, logits.count, &mut self.spool)?];
        let mut contents = vec![rows];

        let leaves: Vec<Digest> = self.trace.values().map(|boundary| boundary.leaf).collect();
        let count = leaves.len() as u64;
        let root = match self.trace_mode {
            TraceMode::None => None,
            TraceMode::Layers | TraceMode::Steps | TraceMode::Cells => {
                let digests = self.trace.values().flat_map(|boundary| boundary.content.0);
                let digests = Contents::Bytes(digests.collect());
                sections.push(digests.section(TRACE_SECTION, count, &mut self.spool)?);
                contents.push(digests);
                Some(merkle::root(&leaves))
            }
        };
        let trace = Trace { mode: self.trace_mode, count, root };
        let cells = match self.trace_mode {
            TraceMode::Cells => {
                Some(self.trace.into_values().filter_map(|boundary| boundary.place).collect())
            }
            TraceMode::None | TraceMode::Layers | TraceMode::Steps => None,
        };
        Ok(Recording { logits, trace, sections, contents, cells, spool: self.spool })
    }
}

/// What a run commits to, ready for a statement, and everything committed to.
#[derive(Debug)]
pub struct Recording {
    /// Commitment to the logits.
    pub logits: Logits,
    /// Commitment to the step outputs.
    pub trace: Trace,
    /// The statement's list of sections.
    pub sections: Vec<Section>,
    contents: Vec<Contents>,
    /// Places of the leaves of a trace of cells, in order.
    cells: Option<Vec<Range<u64>>>,
    spool: Spool,
}

/// Two recordings are equal if their commitments are.
impl PartialEq for Recording {
    fn eq(&self, other: &Self) -> bool {
        let commitments = |own: &Self| (own.logits.clone(), own.trace.clone());
        commitments(self) == commitments(other) && self.sections == other.sections
    }
}

impl Recording {
    /// The contents of the sections, in the statement's order.
    ///
    /// # Errors
    /// The system's, if they had been put aside in a file.
    pub fn contents(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut all = Vec::with_capacity(self.contents.len());
        for contents in &self.contents {
            let mut bytes = Vec::new();
            contents.write(&mut self.spool, &mut bytes)?;
            all.push(bytes);
        }
        Ok(all)
    }

    /// Writes the contents of a section of the statement's list.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write_section(&mut self, index: usize, out: &mut dyn Write) -> io::Result<()> {
        match self.contents.get(index) {
            Some(contents) => contents.write(&mut self.spool, out),
            None => Ok(()),
        }
    }

    /// Length of all rows that a trace of cells commits to (bytes); `None` for any other.
    pub(super) fn cells_len_bytes(&self) -> Option<u64> {
        let length = |places: &Vec<Range<u64>>| places.iter().map(|p| p.end - p.start).sum();
        self.cells.as_ref().map(length)
    }

    /// Writes all rows that a trace of cells commits to.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write_cells(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.spool.copy(self.cells.as_deref().unwrap_or_default(), out)
    }
}

/// The contents of a section.
#[derive(Debug)]
enum Contents {
    Bytes(Vec<u8>),
    Spooled(Vec<Range<u64>>),
}

impl Contents {
    fn write(&self, spool: &mut Spool, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Bytes(bytes) => out.write_all(bytes),
            Self::Spooled(places) => spool.copy(places, out),
        }
    }

    fn section(
        &self,
        kind: &str,
        leaf_count: u64,
        spool: &mut Spool,
    ) -> Result<Section, RecordError> {
        let mut measured = Measured::default();
        self.write(spool, &mut measured).map_err(not_put_aside)?;
        let (len_bytes, sha256) = (measured.len_bytes, measured.hashing.finish());
        Ok(Section { kind: kind.to_owned(), len_bytes, leaf_count, sha256 })
    }
}

/// Length and digest of what is written to it.
#[derive(Default)]
struct Measured {
    len_bytes: u64,
    hashing: Hashing,
}

impl Write for Measured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.len_bytes += bytes.len() as u64;
        self.hashing.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[allow(clippy::needless_pass_by_value)] // The form that `map_err` wants.
fn not_put_aside(error: io::Error) -> RecordError {
    RecordError::Spool { reason: error.to_string() }
}
