//! The comparing tap: stops at the first output that differs, and locates it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::recorded::{Expected, Recorded};
use super::report::{Difference, Finding};
use crate::engine::{Flow, Progress, Tap};
use crate::num::Tensor;
use crate::plan::{LOGITS, Pass, Step};

/// Compares outputs with what a transcript says of them.
#[derive(Debug)]
pub(super) struct CompareTap<'a, P> {
    /// What it says.
    pub(super) recorded: Recorded<'a>,
    /// The first difference.
    pub(super) finding: Option<Finding>,
    /// What was expected where it is, and the operands, if they are wanted.
    pub(super) differing: Option<Differing>,
    /// Whether the operands of the differing step are wanted.
    pub(super) wants_operands: bool,
    /// Outputs found equal, or committed to by a root that is still to be compared.
    pub(super) compared: u64,
    /// Is told how much of the work is done.
    pub(super) progress: P,
    /// Becomes true when nobody needs the result any more.
    pub(super) refuted: &'a AtomicBool,
}

/// The step whose output differs.
#[derive(Debug)]
pub(super) struct Differing {
    /// Its pass.
    pub(super) pass: Pass,
    /// Its index.
    pub(super) index: usize,
    /// What the transcript says of its output.
    pub(super) expected: Expected,
    /// Its operands that are values or tokens, the pass's rows only.
    pub(super) operands: Vec<Tensor>,
}

impl<P: FnMut(&Progress<'_>)> Tap for CompareTap<'_, P> {
    fn wants(&self, pass: &Pass, index: usize, step: &Step) -> bool {
        step.name == LOGITS || self.recorded.traces(pass, index, step)
    }

    fn observe(&mut self, pass: &Pass, index: usize, step: &Step, output: &Tensor) -> Flow {
        let mut differs = None;
        if step.name == LOGITS {
            differs = self.recorded.logits(pass, output);
            self.compared += u64::from(differs.is_none());
        }
        if differs.is_none() {
            let (equal, other) = self.recorded.output(pass, index, step, output);
            (self.compared, differs) = (self.compared + equal, other);
        }
        let Some(expected) = differs else { return Flow::Continue };
        self.finding = Some(finding(pass, index, step, &expected, output));
        self.differing = Some(Differing { pass: *pass, index, expected, operands: Vec::new() });
        Flow::Stop
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

/// A difference, located as far as what is recorded tells.
pub(super) fn finding(
    pass: &Pass,
    index: usize,
    step: &Step,
    expected: &Expected,
    output: &Tensor,
) -> Finding {
    let difference = difference(expected, output);
    let row = match (expected.row, &difference) {
        (Some(row), _) => Some(row),
        (None, Difference::Element { row, .. }) => Some(*row),
        (None, Difference::Length { .. } | Difference::Digest { .. }) => {
            (step.rows == 1).then_some(0)
        }
    };
    // After the last layer a pass has one row, its last token's.
    let position = |row| match step.rows == pass.tokens {
        true => pass.start + row,
        false => pass.start + pass.tokens - 1,
    };
    Finding {
        pass: pass.index,
        position: row.map(position),
        layer: step.layer,
        step_index: index,
        step: step.name.clone(),
        recipe: step.recipe.to_string(),
        difference,
        diagnosis: None,
    }
}

/// Says how an output differs from what is recorded: where, if the bytes are known. It is
/// known to differ.
fn difference(expected: &Expected, output: &Tensor) -> Difference {
    let own = expected.row.and_then(|row| output.rows(row..row + 1));
    let output = own.as_ref().unwrap_or(output);
    let computed = output.to_le_bytes();
    let Some(recorded) = &expected.bytes else {
        let recorded = expected.digest.map_or("none".into(), |digest| digest.to_string());
        return Difference::Digest { recorded, computed: output.content_digest().to_string() };
    };
    let size = output.dtype().size_bytes();
    let pairs = || recorded.chunks(size).zip(computed.chunks(size));
    let first = pairs().position(|(a, b)| a != b);
    let Some(first) = first.filter(|_| recorded.len() == computed.len()) else {
        // Without this, bytes that are a prefix of the others would be equal to them.
        return Difference::Length { recorded: recorded.len(), computed: computed.len() };
    };
    let columns = output.shape().last().copied().unwrap_or(1).max(1);
    let bits = |bytes: &[u8]| {
        let big_endian: Vec<u8> =
            bytes[first * size..(first + 1) * size].iter().rev().copied().collect();
        hex::encode(big_endian)
    };
    Difference::Element {
        row: first / columns,
        column: first % columns,
        recorded: bits(recorded),
        computed: bits(&computed),
        differing: pairs().filter(|(a, b)| a != b).count(),
        elements: computed.len() / size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::{Bf16, sha256};

    fn bytes(recorded: &[u8]) -> Expected {
        Expected { row: None, digest: None, bytes: Some(recorded.to_vec()) }
    }

    #[test]
    fn locates_the_first_element_and_counts_all() {
        let computed = Tensor::matrix(2, 2, vec![Bf16(1), Bf16(0x3f80), Bf16(3), Bf16(4)]);
        let recorded = Tensor::matrix(2, 2, vec![Bf16(1), Bf16(0x3f81), Bf16(3), Bf16(5)]);
        let recorded = bytes(&recorded.to_le_bytes());
        let wanted = Difference::Element {
            row: 0,
            column: 1,
            recorded: "3f81".into(),
            computed: "3f80".into(),
            differing: 2,
            elements: 4,
        };
        assert_eq!(difference(&recorded, &computed), wanted);
        assert!(!recorded.is(&computed));
        assert!(bytes(&computed.to_le_bytes()).is(&computed));
        let second = Expected { row: Some(1), ..recorded };
        assert!(!second.is(&computed), "two rows are no row");
        let second = Expected { bytes: Some(vec![3, 0, 4, 0]), ..second };
        assert!(second.is(&computed));
    }

    #[test]
    fn a_prefix_is_not_equal_to_the_whole() {
        let computed = Tensor::matrix(1, 2, vec![Bf16(1), Bf16(2)]);
        let own = computed.to_le_bytes();
        for recorded in [&own[..2], &[], &[&own[..], &[0, 0]].concat()] {
            let recorded = bytes(recorded);
            let length = recorded.bytes.as_ref().map_or(0, Vec::len);
            let wanted = Difference::Length { recorded: length, computed: 4 };
            assert_eq!(difference(&recorded, &computed), wanted);
            assert!(!recorded.is(&computed));
        }
    }

    #[test]
    fn a_digest_tells_that_and_not_where() {
        let computed = Tensor::matrix(1, 1, vec![Bf16(1)]);
        let digest =
            |bytes: &[u8]| Expected { row: None, digest: Some(sha256(&[bytes])), bytes: None };
        assert!(digest(&computed.to_le_bytes()).is(&computed));
        let other = digest(b"other");
        assert!(!other.is(&computed));
        assert!(matches!(difference(&other, &computed), Difference::Digest { .. }));
    }
}
