//! The openings behind the sections: outputs that a trace of cells commits to.
//!
//! One CBOR map: the draw that they answer (absent if every output is there), their
//! contents one behind the other in the order of the leaves, and the nodes that lead
//! from them to the root. Which outputs they are follows from the draw and the
//! statement, so no list of them can lie ([`super::cells`]).

use std::ops::Range;

use ciborium::Value;

use super::source::Source;
use super::wire::{Wire as _, byte_string_head, encode, record};
use super::{TranscriptError, strict};
use crate::num::Digest;

record! {
    /// Which cells a verifier asked for.
    Draw {
        /// How many.
        1 => cells: u64,
        /// What they were drawn from, at most [`MAX_NONCE_LEN_BYTES`].
        2 => nonce: Vec<u8>,
    }
}

/// A draw for one transcript.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Challenge {
    /// Digest of the transcript.
    pub transcript: Digest,
    /// Which of its cells are asked for.
    pub draw: Draw,
}

/// Longest nonce of a draw.
pub const MAX_NONCE_LEN_BYTES: usize = 64;

/// Where the openings of a file are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opening {
    /// The draw that they answer; `None` if they are all there are.
    pub draw: Option<Draw>,
    /// The contents of the opened leaves.
    pub contents: Range<u64>,
    /// Nodes of the tree beside them, 32 bytes each.
    pub nodes: Range<u64>,
}

impl Opening {
    /// Reads the map that starts at `at`; also returns where it ends.
    pub(super) fn read(source: &Source, at: u64) -> Result<(Self, u64), TranscriptError> {
        let refusal = |at: u64, reason| {
            let offset = usize::try_from(at).unwrap_or(usize::MAX);
            TranscriptError::Envelope { offset, reason }
        };
        let end = source.len_bytes();
        let first = source.read(at..end.min(at + FIRST_LEN_BYTES))?;
        let mut next = 1;
        let draw = match first.first() {
            Some(&MAP_OF_TWO) => None,
            Some(&MAP_OF_THREE) if first.get(next) == Some(&1) => {
                let from = next + 1;
                next = strict::item_end(&first, from).map_err(|error| error.moved(at))?;
                let value = ciborium::from_reader(&first[from..next]);
                let value = value.map_err(|_| refusal(at, "undecodable draw"))?;
                let draw = Draw::from_value(value, "draw")?;
                if draw.nonce.is_empty() || draw.nonce.len() > MAX_NONCE_LEN_BYTES {
                    return Err(refusal(at, "the nonce of a draw must have 1 to 64 bytes"));
                }
                if encode(&draw.to_value()) != first[from..next] {
                    return Err(refusal(at, "the draw is not in its canonical form"));
                }
                Some(draw)
            }
            Some(_) | None => {
                let offset = usize::try_from(at).unwrap_or(usize::MAX);
                let count = usize::try_from(end - at).unwrap_or(usize::MAX);
                return Err(TranscriptError::TrailingBytes { offset, count });
            }
        };
        let member = |at: u64, key: u8, reason| -> Result<Range<u64>, TranscriptError> {
            let head = source.read(at..end.min(at + 1 + strict::MAX_HEAD_LEN_BYTES as u64))?;
            match head.split_first() {
                Some((&found, rest)) if found == key => strict::byte_string_of(rest, at + 1, end),
                Some(_) | None => Err(refusal(at, reason)),
            }
        };
        let contents = member(at + next as u64, 2, "openings: contents (key 2) are due")?;
        let nodes = member(contents.end, 3, "openings: nodes (key 3) are due")?;
        if !(nodes.end - nodes.start).is_multiple_of(size_of::<Digest>() as u64) {
            return Err(refusal(nodes.start, "openings: the nodes are no whole digests"));
        }
        let end = nodes.end;
        Ok((Self { draw, contents, nodes }, end))
    }

    /// What precedes the contents in the file.
    pub fn head(draw: Option<&Draw>, contents_len_bytes: u64) -> Vec<u8> {
        let mut head = match draw {
            None => vec![MAP_OF_TWO],
            Some(draw) => [&[MAP_OF_THREE, 1], &encode(&draw.to_value())[..]].concat(),
        };
        head.push(2);
        head.extend(byte_string_head(contents_len_bytes));
        head
    }

    /// What follows the contents in the file.
    pub fn tail(nodes: &[Digest]) -> Vec<u8> {
        let bytes: Vec<u8> = nodes.iter().flat_map(|node| node.0).collect();
        [&[3], &encode(&Value::Bytes(bytes))[..]].concat()
    }
}

// RFC 8949 section 3.1.
const MAP_OF_TWO: u8 = 0xa2;
const MAP_OF_THREE: u8 = 0xa3;

/// Enough for the map's head and a draw.
const FIRST_LEN_BYTES: u64 = 128;
