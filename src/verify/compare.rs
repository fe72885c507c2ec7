//! The comparing tap: stops at the first output that differs, and locates it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::report::{Difference, Finding};
use crate::engine::{Flow, Progress, Tap};
use crate::num::{Digest, Tensor};
use crate::plan::{LOGITS, Pass, Step};

/// What a transcript says of one output.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected<'a> {
    /// Its bytes.
    Bytes(&'a [u8]),
    /// The SHA-256 of its bytes.
    Digest(Digest),
}

/// Compares outputs with what a transcript says of them.
#[derive(Debug)]
pub(super) struct CompareTap<'a, P> {
    /// Expected logits, by pass.
    pub(super) logits: Vec<Expected<'a>>,
    /// Expected digests of step outputs, by pass and step index.
    pub(super) trace: HashMap<(usize, usize), Digest>,
    /// The first difference.
    pub(super) finding: Option<Finding>,
    /// What was expected where it is, and the operands, if they are wanted.
    pub(super) differing: Option<Differing<'a>>,
    /// Whether the operands of the differing step are wanted.
    pub(super) wants_operands: bool,
    /// Outputs compared and found equal.
    pub(super) compared: usize,
    /// Is told how much of the work is done.
    pub(super) progress: P,
    /// Becomes true when nobody needs the result any more.
    pub(super) refuted: &'a AtomicBool,
}

/// The step whose output differs.
#[derive(Debug)]
pub(super) struct Differing<'a> {
    /// Its pass.
    pub(super) pass: Pass,
    /// Its index.
    pub(super) index: usize,
    /// What the transcript says of its output.
    pub(super) expected: Expected<'a>,
    /// Its operands that are values or tokens, the pass's rows only.
    pub(super) operands: Vec<Tensor>,
}

impl Expected<'_> {
    /// Whether an output is the recorded one.
    pub(super) fn is(self, output: &Tensor) -> bool {
        difference(self, output).is_none()
    }
}

impl<P: FnMut(&Progress<'_>)> Tap for CompareTap<'_, P> {
    fn wants(&self, pass: &Pass, index: usize, step: &Step) -> bool {
        step.name == LOGITS || self.trace.contains_key(&(pass.index, index))
    }

    fn observe(&mut self, pass: &Pass, index: usize, step: &Step, output: &Tensor) -> Flow {
        let mut expected = Vec::new();
        if step.name == LOGITS {
            // Values first: they locate the element, a digest cannot.
            expected.extend(self.logits.get(pass.index).copied());
        }
        expected.extend(self.trace.get(&(pass.index, index)).map(|d| Expected::Digest(*d)));
        for expected in expected {
            if let Some(difference) = difference(expected, output) {
                self.finding = Some(Finding {
                    pass: pass.index,
                    layer: step.layer,
                    step_index: index,
                    step: step.name.clone(),
                    recipe: step.recipe.to_string(),
                    difference,
                    diagnosis: None,
                });
                let (pass, operands) = (*pass, Vec::new());
                self.differing = Some(Differing { pass, index, expected, operands });
                return Flow::Stop;
            }
            self.compared += 1;
        }
        Flow::Continue
    }

    fn wants_operands(&self) -> bool {
        self.wants_operands
    }

    fn stopped(&mut self, operands: Vec<Tensor>) {
        if let Some(differing) = &mut self.differing {
            differing.operands = operands;
        }
    }

    fn progress(&mut self, progress: &Progress<'_>) -> Flow {
        (self.progress)(progress);
        if self.refuted.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Continue }
    }
}

/// Compares bytes as bytes; `None` if they are equal.
fn difference(expected: Expected<'_>, output: &Tensor) -> Option<Difference> {
    match expected {
        Expected::Digest(expected) => {
            let computed = output.content_digest();
            (computed != expected).then(|| Difference::Digest {
                recorded: expected.to_string(),
                computed: computed.to_string(),
            })
        }
        Expected::Bytes(expected) if output.is_le_bytes(expected) => None,
        Expected::Bytes(expected) => {
            let computed = output.to_le_bytes();
            if expected.len() != computed.len() {
                // Without this, bytes that are a prefix of the others would be equal to them.
                let (recorded, computed) = (expected.len(), computed.len());
                return Some(Difference::Length { recorded, computed });
            }
            let size = output.dtype().size_bytes();
            let pairs = || expected.chunks(size).zip(computed.chunks(size));
            let first = pairs().position(|(a, b)| a != b)?;
            let columns = output.shape().last().copied().unwrap_or(1).max(1);
            let bits = |bytes: &[u8]| {
                let big_endian: Vec<u8> =
                    bytes[first * size..(first + 1) * size].iter().rev().copied().collect();
                hex::encode(big_endian)
            };
            Some(Difference::Element {
                row: first / columns,
                column: first % columns,
                recorded: bits(expected),
                computed: bits(&computed),
                differing: pairs().filter(|(a, b)| a != b).count(),
                elements: computed.len() / size,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::{Bf16, sha256};

    #[test]
    fn locates_the_first_element_and_counts_all() {
        let computed = Tensor::matrix(2, 2, vec![Bf16(1), Bf16(0x3f80), Bf16(3), Bf16(4)]);
        let expected = Tensor::matrix(2, 2, vec![Bf16(1), Bf16(0x3f81), Bf16(3), Bf16(5)]);
        let expected = expected.to_le_bytes();
        let found = difference(Expected::Bytes(&expected), &computed);
        let wanted = Difference::Element {
            row: 0,
            column: 1,
            recorded: "3f81".into(),
            computed: "3f80".into(),
            differing: 2,
            elements: 4,
        };
        assert_eq!(found, Some(wanted));
        let same = computed.to_le_bytes();
        assert_eq!(difference(Expected::Bytes(&same), &computed), None);
    }

    #[test]
    fn a_prefix_is_not_equal_to_the_whole() {
        let computed = Tensor::matrix(1, 2, vec![Bf16(1), Bf16(2)]);
        let bytes = computed.to_le_bytes();
        for expected in [&bytes[..2], &[], &[&bytes[..], &[0, 0]].concat()] {
            let found = difference(Expected::Bytes(expected), &computed);
            let wanted = Difference::Length { recorded: expected.len(), computed: 4 };
            assert_eq!(found, Some(wanted));
        }
    }

    #[test]
    fn a_digest_tells_that_and_not_where() {
        let computed = Tensor::matrix(1, 1, vec![Bf16(1)]);
        let bytes = computed.to_le_bytes();
        assert_eq!(difference(Expected::Digest(sha256(&[&bytes])), &computed), None);
        let other = Expected::Digest(sha256(&[b"other"]));
        assert!(matches!(difference(other, &computed), Some(Difference::Digest { .. })));
    }
}
