//! Cells: what a trace of mode `cells` commits to, and which of it a draw opens.
//!
//! A cell is one layer at one position. Its outputs are the key and the value row that
//! it keeps and the row that it hands to the next layer; its inputs are the row of the
//! layer before and the kept rows of all earlier positions. Each of these rows is a
//! leaf, so a cell can be computed again from leaves alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::leaf::LeafHeader;
use super::opening::Draw;
use super::{Transcript, TranscriptError, multiproof};
use crate::model::qwen3;
use crate::num::{Digest, Dtype, sha256};
use crate::plan::{Plan, Step};

/// Kind of the leaves; their section is the trace's.
pub const CELLS: &str = "cells";

/// One layer at one position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cell {
    /// The layer.
    pub layer: usize,
    /// The position in the sequence.
    pub position: usize,
}

/// Whether each row of a step's output is a leaf: rows that are kept, and those that a
/// layer hands on.
pub fn is_leaf(step: &Step) -> bool {
    step.keeps.is_some() || (step.layer.is_some() && qwen3::is_layer_output(step))
}

/// The leaves of a sequence: how many, in which order, how long.
///
/// They are ordered by position, then by step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Tokens that the passes take.
    pub positions: usize,
    /// Layers.
    pub layers: usize,
    /// The leaves of one position.
    leaves: Vec<Leaf>,
    /// Pass of every position.
    passes: Vec<usize>,
}

/// A leaf of every position.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Leaf {
    step_index: usize,
    name: String,
    layer: usize,
    dtype: Dtype,
    columns: usize,
    kept: bool,
}

impl Layout {
    /// Lays out the leaves of some passes, which share their structure.
    pub fn new(plans: &[Plan]) -> Self {
        let steps = plans.first().map(|plan| &plan.steps[..]).unwrap_or_default();
        let leaf = |(step_index, step): (usize, &Step)| {
            is_leaf(step).then(|| Leaf {
                step_index,
                name: step.name.clone(),
                layer: step.layer.unwrap_or(0),
                dtype: step.dtype,
                columns: step.columns,
                kept: step.keeps.is_some(),
            })
        };
        let leaves: Vec<Leaf> = steps.iter().enumerate().filter_map(leaf).collect();
        let layers = leaves.last().map_or(0, |leaf| leaf.layer + 1);
        let of = |plan: &Plan| vec![plan.pass.index; plan.pass.tokens];
        let passes: Vec<usize> = plans.iter().flat_map(of).collect();
        Self { positions: passes.len(), layers, leaves, passes }
    }

    /// How many cells there are.
    pub fn cells(&self) -> u64 {
        self.positions as u64 * self.layers as u64
    }

    /// How many leaves there are.
    pub fn count(&self) -> u64 {
        self.positions as u64 * self.leaves.len() as u64
    }

    /// Number of the leaf that the step of this index has at a position, if it has one.
    pub fn index(&self, position: usize, step_index: usize) -> Option<u64> {
        let within = self.leaves.iter().position(|leaf| leaf.step_index == step_index)?;
        (position < self.positions).then(|| (position * self.leaves.len() + within) as u64)
    }

    /// The hash of a leaf with contents of this digest.
    pub fn hash(&self, index: u64, content: Digest) -> Option<Digest> {
        let (position, leaf) = self.leaf(index)?;
        let (dtype, shape) = (leaf.dtype, [leaf.columns as u64]);
        let pass = *self.passes.get(position)? as u64;
        Some(header(pass, position as u64, &leaf.name, dtype, &shape).hash(content))
    }

    /// The hashes of all leaves, given the digests of their contents in order; `None` if
    /// there are fewer.
    pub fn hashes(&self, content: impl Fn(u64) -> Option<Digest>) -> Option<Vec<Digest>> {
        (0..self.count()).map(|index| self.hash(index, content(index)?)).collect()
    }

    /// Length of a leaf's contents (bytes).
    pub(super) fn len_bytes(&self, index: u64) -> u64 {
        let of = |(_, leaf): (usize, &Leaf)| (leaf.columns * leaf.dtype.size_bytes()) as u64;
        self.leaf(index).map_or(0, of)
    }

    /// Position and kind of a leaf.
    fn leaf(&self, index: u64) -> Option<(usize, &Leaf)> {
        let (index, width) = (usize::try_from(index).ok()?, self.leaves.len());
        let within = index.checked_rem(width)?;
        Some((index / width, &self.leaves[within]))
    }

    /// Says of every leaf whether checking these cells needs it: for each cell its three
    /// outputs, the row handed to it and what its layer kept up to its position; for
    /// each pass what the last layer hands on at its end, from which its token is chosen.
    pub fn needed(&self, cells: &BTreeSet<Cell>) -> Vec<bool> {
        let mut furthest: BTreeMap<usize, usize> = BTreeMap::new();
        for cell in cells {
            let last = furthest.entry(cell.layer).or_default();
            *last = cell.position.max(*last);
        }
        let mut needed = Vec::with_capacity(self.positions * self.leaves.len());
        for position in 0..self.positions {
            let ends_pass = self.passes.get(position + 1) != Some(&self.passes[position]);
            for &Leaf { layer, kept, .. } in &self.leaves {
                let cell = |layer| cells.contains(&Cell { layer, position });
                let chooses = layer + 1 == self.layers && ends_pass;
                needed.push(if kept {
                    furthest.get(&layer).is_some_and(|&last| position <= last)
                } else {
                    cell(layer) || cell(layer + 1) || chooses
                });
            }
        }
        needed
    }
}

impl Layout {
    /// Says of every leaf whether the answer to a draw opens it; without a draw all are
    /// open.
    pub fn opened_by(&self, transcript: Digest, draw: Option<&Draw>) -> Vec<bool> {
        match draw {
            None => vec![true; self.count() as usize],
            Some(draw) => self.needed(&drawn(transcript, draw, self.positions, self.layers)),
        }
    }
}

/// The header of a row of a step's output.
pub fn header<'a>(
    pass: u64,
    position: u64,
    name: &'a str,
    dtype: Dtype,
    shape: &'a [u64; 1],
) -> LeafHeader<'a> {
    LeafHeader { kind: CELLS, pass, index: position, name, dtype, shape }
}

/// The cells that a draw chooses in a transcript of so many positions and layers: as many as it says, no cell twice, all
/// of them if it says more than there are.
///
/// # Source
/// `spec/verification.md`, P2: cell number `w mod cells` for 64-bit words `w` of
/// SHA-256("attest cells v1" ‖ transcript ‖ nonce ‖ counter), words at or above the largest
/// multiple of `cells` skipped, and cells that were chosen already.
pub fn drawn(transcript: Digest, draw: &Draw, positions: usize, layers: usize) -> BTreeSet<Cell> {
    let count = positions as u64 * layers as u64;
    let cell = |number: u64| Cell {
        layer: (number % layers as u64) as usize,
        position: (number / layers as u64) as usize,
    };
    if draw.cells >= count {
        return (0..count).map(cell).collect();
    }
    let fair = u64::MAX - u64::MAX % count;
    let mut cells = BTreeSet::new();
    let mut counter = 0u64;
    while (cells.len() as u64) < draw.cells {
        let digest =
            sha256(&[b"attest cells v1", &transcript.0, &draw.nonce, &counter.to_be_bytes()]);
        counter += 1;
        for word in digest.0.chunks_exact(8) {
            let word = word.iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
            if word < fair && (cells.len() as u64) < draw.cells {
                cells.insert(cell(word % count));
            }
        }
    }
    cells
}

/// Why openings are of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpeningError {
    /// There are none.
    #[error("the transcript has no openings")]
    None,
    /// They are not what the statement commits to.
    #[error("{reason}")]
    Wrong {
        /// What is wrong.
        reason: String,
    },
    /// The file cannot be read, or no more.
    #[error(transparent)]
    Unreadable(#[from] TranscriptError),
}

/// Openings whose contents lead to the trace's root.
#[derive(Debug)]
pub struct Opened {
    /// Place in the file and digest of each opened leaf's contents, by number.
    leaves: BTreeMap<u64, (Range<u64>, Digest)>,
}

impl Opened {
    /// Checks that the openings of a transcript are the needed leaves, with the contents
    /// that the trace's root commits to. Nothing is read before its length is right.
    ///
    /// # Errors
    /// [`OpeningError`].
    pub fn check(
        transcript: &Transcript,
        layout: &Layout,
        needed: &[bool],
    ) -> Result<Self, OpeningError> {
        let wrong = |reason: String| Err(OpeningError::Wrong { reason });
        let Some(opening) = transcript.opening() else { return Err(OpeningError::None) };
        let chosen = || (0..).zip(needed).filter(|(_, needed)| **needed).map(|(index, _)| index);
        let due: u64 = chosen().map(|index| layout.len_bytes(index)).sum();
        let found = opening.contents.end - opening.contents.start;
        if found != due {
            return wrong(format!("the openings have {found} bytes of rows, {due} are due"));
        }
        let found = (opening.nodes.end - opening.nodes.start) / size_of::<Digest>() as u64;
        let due = multiproof::count(needed);
        if found != due {
            return wrong(format!("the openings have {found} nodes, {due} are due"));
        }
        let mut at = opening.contents.start;
        let mut leaves = BTreeMap::new();
        let mut hashes = Vec::new();
        for index in chosen() {
            let place = at..at + layout.len_bytes(index);
            at = place.end;
            let content = sha256(&[&transcript.bytes(place.clone())?]);
            hashes.extend(layout.hash(index, content));
            leaves.insert(index, (place, content));
        }
        let nodes = transcript.bytes(opening.nodes.clone())?;
        let nodes = nodes.chunks_exact(32).filter_map(|node| node.try_into().ok()).map(Digest);
        let nodes: Vec<Digest> = nodes.collect();
        let root = multiproof::root(needed, &hashes, &nodes);
        if root.is_none() || root != transcript.statement().trace.root {
            return wrong("the openings do not lead to the trace's root".into());
        }
        Ok(Self { leaves })
    }

    /// As [`Self::check`], of whatever a file says that it opens.
    ///
    /// # Errors
    /// [`OpeningError`].
    pub fn check_all(transcript: &Transcript, layout: &Layout) -> Result<Self, OpeningError> {
        let draw = transcript.opening().and_then(|opening| opening.draw.as_ref());
        Self::check(transcript, layout, &layout.opened_by(transcript.digest(), draw))
    }

    /// Hashes of the opened leaves, in order.
    pub(super) fn hashes(&self, layout: &Layout) -> Vec<Digest> {
        let hash =
            |(&index, (_, content)): (&u64, &(Range<u64>, Digest))| layout.hash(index, *content);
        self.leaves.iter().filter_map(hash).collect()
    }

    /// The contents of an opened leaf.
    ///
    /// # Errors
    /// A sentence, if it is not open or the file changed since it was checked.
    pub fn content(&self, transcript: &Transcript, index: u64) -> Result<Vec<u8>, String> {
        let (place, digest) =
            self.leaves.get(&index).ok_or_else(|| format!("leaf {index} is not open"))?;
        let bytes = transcript.bytes(place.clone()).map_err(|error| error.to_string())?;
        if sha256(&[&bytes]) != *digest {
            return Err(format!("leaf {index} changed while it was checked"));
        }
        Ok(bytes.into_owned())
    }
}

#[cfg(test)]
mod tests;
