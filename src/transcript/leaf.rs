//! Leaves of the trees: a typed header, then the digest of the contents.
//!
//! The header is hashed in, so a leaf cannot be moved to another pass, position,
//! step or shape. The contents enter as their SHA-256, so a transcript with the
//! bytes and one with digests only have the same root.

use ciborium::Value;

use crate::num::{Digest, Dtype};

use super::statement::{Pass, Statement};
use super::{LOGITS_SECTION, merkle, wire};

/// What one leaf is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafHeader<'a> {
    /// Kind of the section, `logits` or `trace`.
    pub kind: &'a str,
    /// Which forward pass.
    pub pass: u64,
    /// Position in the sequence (`logits`) or index of the step (`trace`).
    pub index: u64,
    /// Name of the output.
    pub name: &'a str,
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions, outermost first.
    pub shape: &'a [u64],
}

impl LeafHeader<'_> {
    /// Returns the leaf hash for contents with this digest.
    pub fn hash(&self, content: Digest) -> Digest {
        merkle::leaf_hash(&[&self.to_bytes(), &content.0])
    }

    /// Returns the deterministic CBOR of the header, an array of six.
    pub fn to_bytes(&self) -> Vec<u8> {
        wire::encode(&Value::Array(vec![
            Value::from(self.kind),
            Value::from(self.pass),
            Value::from(self.index),
            Value::from(self.name),
            Value::from(self.dtype.name()),
            Value::Array(self.shape.iter().map(|&length| Value::from(length)).collect()),
        ]))
    }
}

/// Returns the header of a row of logits.
pub fn logits_header<'a>(
    pass: u64,
    position: u64,
    dtype: Dtype,
    vocab: &'a [u64; 1],
) -> LeafHeader<'a> {
    LeafHeader { kind: LOGITS_SECTION, pass, index: position, name: "logits", dtype, shape: vocab }
}

/// Returns pass and position of each row of logits, in file order.
pub fn logits_places(passes: &[Pass]) -> impl Iterator<Item = (u64, u64)> {
    (0u64..).zip(passes).flat_map(|(index, pass)| {
        let end = pass.start_position.saturating_add(pass.token_count);
        (end.saturating_sub(pass.logits_rows)..end).map(move |position| (index, position))
    })
}

/// Returns the logits root that a statement's passes and these rows give.
pub fn logits_root(statement: &Statement, rows: impl Iterator<Item = Digest>) -> Digest {
    let vocab = [statement.logits.vocab];
    let leaves: Vec<Digest> = logits_places(&statement.passes)
        .zip(rows)
        .map(|((pass, position), row)| {
            logits_header(pass, position, statement.logits.dtype, &vocab).hash(row)
        })
        .collect();
    merkle::root(&leaves)
}
