//! Collects what a run commits to, in whatever order it is computed.

use std::collections::BTreeMap;

use crate::num::{Digest, Dtype, Tensor, sha256};

use super::leaf::{LeafHeader, logits_header};
use super::statement::{Logits, LogitsMode, Section, Trace, TraceMode};
use super::{LOGITS_SECTION, TRACE_SECTION, merkle};

/// Why an output cannot be recorded: a defect of the caller.
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
    /// A step output although the mode says none.
    #[error("a step output is recorded in trace mode none")]
    NotTraced,
}

/// Collects leaves while a model runs.
///
/// Passes may run in any order and layer by layer; leaves are put in order of
/// (pass, position) and (pass, step) at the end.
#[derive(Debug)]
pub struct Recorder {
    logits_mode: LogitsMode,
    trace_mode: TraceMode,
    vocab: u64,
    dtype: Dtype,
    logits: BTreeMap<(u64, u64), Row>,
    trace: BTreeMap<(u64, u64), Boundary>,
}

#[derive(Debug)]
struct Row {
    digest: Digest,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Boundary {
    leaf: Digest,
    content: Digest,
}

/// What a run commits to, ready for a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Commitment to the logits.
    pub logits: Logits,
    /// Commitment to the step outputs.
    pub trace: Trace,
    /// The statement's list of sections.
    pub sections: Vec<Section>,
    /// Contents of the sections, in the same order.
    pub contents: Vec<Vec<u8>>,
}

impl Recorder {
    /// Makes an empty recorder for rows of `vocab` elements.
    pub fn new(logits_mode: LogitsMode, trace_mode: TraceMode, vocab: u64, dtype: Dtype) -> Self {
        let (logits, trace) = (BTreeMap::new(), BTreeMap::new());
        Self { logits_mode, trace_mode, vocab, dtype, logits, trace }
    }

    /// Records the logits of one position.
    ///
    /// # Shape
    /// `row`: `[vocab]` or `[1, vocab]`.
    ///
    /// # Errors
    /// [`RecordError::Row`], [`RecordError::Twice`].
    pub fn logits(&mut self, pass: u64, position: u64, row: &Tensor) -> Result<(), RecordError> {
        let found = row.shape().iter().product::<usize>() as u64;
        if (found, row.dtype()) != (self.vocab, self.dtype) {
            let (dtype, expected) = (row.dtype().name(), self.dtype.name());
            let vocab = self.vocab;
            return Err(RecordError::Row { pass, position, found, dtype, vocab, expected });
        }
        let mut bytes = row.to_le_bytes();
        let digest = sha256(&[&bytes]);
        match self.logits_mode {
            LogitsMode::Full => {}
            LogitsMode::Hash => bytes = Vec::new(),
        }
        match self.logits.insert((pass, position), Row { digest, bytes }) {
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
            TraceMode::None => return Err(RecordError::NotTraced),
            TraceMode::Layers | TraceMode::Steps => {}
        }
        let shape: Vec<u64> = output.shape().iter().map(|&length| length as u64).collect();
        let content = output.content_digest();
        let dtype = output.dtype();
        let leaf = LeafHeader { kind: TRACE_SECTION, pass, index, name, dtype, shape: &shape }
            .hash(content);
        match self.trace.insert((pass, index), Boundary { leaf, content }) {
            None => Ok(()),
            Some(_) => Err(RecordError::Twice { kind: TRACE_SECTION, pass, index }),
        }
    }

    /// Builds the commitments and the sections.
    pub fn finish(self) -> Recording {
        let vocab = [self.vocab];
        let mut leaves = Vec::with_capacity(self.logits.len());
        let mut rows = Vec::new();
        for (&(pass, position), row) in &self.logits {
            leaves.push(logits_header(pass, position, self.dtype, &vocab).hash(row.digest));
            rows.extend_from_slice(match self.logits_mode {
                LogitsMode::Full => &row.bytes,
                LogitsMode::Hash => &row.digest.0,
            });
        }
        let count = leaves.len() as u64;
        let logits = Logits {
            mode: self.logits_mode,
            count,
            vocab: self.vocab,
            dtype: self.dtype,
            root: merkle::root(&leaves),
        };
        let mut sections = vec![section(LOGITS_SECTION, count, &rows)];
        let mut contents = vec![rows];

        let leaves: Vec<Digest> = self.trace.values().map(|boundary| boundary.leaf).collect();
        let count = leaves.len() as u64;
        let root = match self.trace_mode {
            TraceMode::None => None,
            TraceMode::Layers | TraceMode::Steps => {
                let digests: Vec<u8> =
                    self.trace.values().flat_map(|boundary| boundary.content.0).collect();
                sections.push(section(TRACE_SECTION, count, &digests));
                contents.push(digests);
                Some(merkle::root(&leaves))
            }
        };
        let trace = Trace { mode: self.trace_mode, count, root };
        Recording { logits, trace, sections, contents }
    }
}

fn section(kind: &str, leaf_count: u64, contents: &[u8]) -> Section {
    Section {
        kind: kind.to_owned(),
        len_bytes: contents.len() as u64,
        leaf_count,
        sha256: sha256(&[contents]),
    }
}
