//! Recorded outputs compared: rows of logits, and digests of step outputs.

use serde::Serialize;

use crate::model::qwen3;
use crate::num::Digest;
use crate::transcript::statement::{Pass, Statement, TraceMode};
use crate::transcript::{LOGITS_SECTION, TRACE_SECTION, Transcript, leaf};

/// Outputs of two transcripts, if they can be compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outputs<T> {
    /// As many as both have were compared.
    Compared(T),
    /// They are not of one kind.
    NotCompared {
        /// Why.
        reason: String,
    },
}

/// How the rows of logits compare.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LogitsComparison {
    /// Rows compared: those that both transcripts have.
    pub rows: u64,
    /// How many of them differ.
    pub differing_rows: u64,
    /// How many elements of all rows compared differ, where both hold values.
    pub differing_elements: Option<u64>,
    /// The first row that differs.
    pub first: Option<FirstRow>,
}

/// The first row of logits that differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FirstRow {
    /// Its number.
    pub row: u64,
    /// Its pass in the first transcript.
    pub pass: u64,
    /// Its position in the sequence, in the first transcript.
    pub position: u64,
    /// The first element of it that differs, where both hold values.
    pub element: Option<FirstElement>,
}

/// The first element that differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FirstElement {
    /// Its column: a token id.
    pub column: usize,
    /// Its bits in the first transcript, hex.
    pub a: String,
    /// Its bits in the second transcript, hex.
    pub b: String,
    /// How many elements of this row differ.
    pub differing: usize,
    /// Elements of a row.
    pub elements: usize,
}

/// How the recorded outputs of steps compare.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TraceComparison {
    /// Outputs compared: those of passes that both transcripts have.
    pub outputs: u64,
    /// How many of them differ.
    pub differing: u64,
    /// The first that differs.
    pub first: Option<FirstOutput>,
}

/// The first recorded output that differs: of the pass that comes first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FirstOutput {
    /// Its pass.
    pub pass: u64,
    /// Its position, in a trace of cells.
    pub position: Option<u64>,
    /// Index of its step in the plan, where it is known.
    pub step_index: Option<usize>,
    /// Its layer, if it belongs to one and that is known.
    pub layer: Option<usize>,
    /// Name of its step, where it is known: the plan's, of as many steps as a pass has
    /// outputs in the trace.
    pub step: Option<String>,
    /// Its digest in the first transcript.
    pub a: String,
    /// Its digest in the second transcript.
    pub b: String,
}

/// Compares the rows of logits that both transcripts have, by number.
pub(super) fn logits(a: &Transcript, b: &Transcript) -> Outputs<LogitsComparison> {
    let (own, other) = (&a.statement().logits, &b.statement().logits);
    if (own.vocab, own.dtype) != (other.vocab, other.dtype) {
        let reason = format!(
            "rows have {} {} in A, {} {} in B",
            own.vocab,
            own.dtype.name(),
            other.vocab,
            other.dtype.name()
        );
        return Outputs::NotCompared { reason };
    }
    for (transcript, name) in [(a, "A"), (b, "B")] {
        if transcript.withholds(LOGITS_SECTION) {
            return Outputs::NotCompared { reason: format!("{name} withholds them") };
        }
    }
    let size = own.dtype.size_bytes();
    let rows = own.count.min(other.count);
    let mut compared =
        LogitsComparison { rows, differing_rows: 0, differing_elements: None, first: None };
    let mut places = leaf::logits_places(&a.statement().passes);
    for row in 0..rows {
        let place = places.next();
        let element = match (a.logits_row(row), b.logits_row(row)) {
            (Some(a), Some(b)) => {
                let total = compared.differing_elements.get_or_insert(0);
                let element = first_element(&a, &b, size);
                *total += element.as_ref().map_or(0, |element| element.differing as u64);
                if element.is_none() {
                    continue;
                }
                element
            }
            (Some(_), None) | (None, Some(_)) | (None, None) => {
                if a.logits_digest(row) == b.logits_digest(row) {
                    continue;
                }
                None
            }
        };
        compared.differing_rows += 1;
        if compared.first.is_none()
            && let Some((pass, position)) = place
        {
            compared.first = Some(FirstRow { row, pass, position, element });
        }
    }
    Outputs::Compared(compared)
}

fn first_element(a: &[u8], b: &[u8], size: usize) -> Option<FirstElement> {
    let pairs = || a.chunks(size).zip(b.chunks(size));
    let column = pairs().position(|(a, b)| a != b)?;
    let bits = |row: &[u8]| {
        let big_endian = row[column * size..(column + 1) * size].iter().rev().copied();
        hex::encode(big_endian.collect::<Vec<u8>>())
    };
    Some(FirstElement {
        column,
        a: bits(a),
        b: bits(b),
        differing: pairs().filter(|(a, b)| a != b).count(),
        elements: a.len() / size,
    })
}

/// Compares the recorded step outputs of passes that both transcripts have.
pub(super) fn trace(a: &Transcript, b: &Transcript) -> Outputs<TraceComparison> {
    let (own, other) = (a.statement(), b.statement());
    let mode = own.trace.mode;
    if mode != other.trace.mode {
        let (own, other) = (mode.word(), other.trace.mode.word());
        return Outputs::NotCompared { reason: format!("the mode is {own} in A, {other} in B") };
    }
    if mode == TraceMode::None {
        return Outputs::NotCompared { reason: "neither has a trace".into() };
    }
    for (transcript, name) in [(a, "A"), (b, "B")] {
        if transcript.withholds(TRACE_SECTION) {
            return Outputs::NotCompared { reason: format!("{name} withholds them") };
        }
    }
    let (Some(of_pass), true) = (outputs_of_a_pass(own), of_passes_alike(own, other)) else {
        let (own, other) = (own.trace.count, other.trace.count);
        let reason = format!("passes have other outputs in A ({own}) than in B ({other})");
        return Outputs::NotCompared { reason };
    };
    let outputs = own.trace.count.min(other.trace.count);
    let mut compared = TraceComparison { outputs, differing: 0, first: None };
    for index in 0..outputs {
        let (Some(a), Some(b)) = (a.trace_digest(index), b.trace_digest(index)) else { continue };
        if a == b {
            continue;
        }
        compared.differing += 1;
        if compared.first.is_none() {
            compared.first = Some(place(own, of_pass, index, (a, b)));
        }
    }
    Outputs::Compared(compared)
}

/// Leaves of one pass, of a trace of cells those of one position; `None` if not all have
/// equally many.
fn outputs_of_a_pass(statement: &Statement) -> Option<u64> {
    let positions = || statement.passes.iter().map(|pass| pass.token_count).sum();
    let (leaves, passes): (u64, u64) = match statement.trace.mode {
        TraceMode::Cells => (statement.trace.count, positions()),
        TraceMode::None | TraceMode::Layers | TraceMode::Steps => {
            (statement.trace.count, statement.passes.len() as u64)
        }
    };
    (passes > 0 && leaves >= passes && leaves.is_multiple_of(passes)).then(|| leaves / passes)
}

fn of_passes_alike(a: &Statement, b: &Statement) -> bool {
    outputs_of_a_pass(a) == outputs_of_a_pass(b)
}

fn place(statement: &Statement, of_pass: u64, index: u64, (a, b): (Digest, Digest)) -> FirstOutput {
    let (mut pass, within) = (index / of_pass, (index % of_pass) as usize);
    let mut position = None;
    let (step_index, layer, step) = match statement.trace.mode {
        TraceMode::Steps => match qwen3::step_of(of_pass as usize, within) {
            Some(step) => (Some(within), step.layer, Some(step.name)),
            None => (Some(within), None, None),
        },
        // The embedding's output, then each layer's.
        TraceMode::Layers => match within.checked_sub(1) {
            Some(layer) => (None, Some(layer), None),
            None => (Some(0), None, Some("embed_tokens".to_owned())),
        },
        TraceMode::Cells => {
            position = Some(pass);
            let holds = |own: &Pass| own.start_position + own.token_count > index / of_pass;
            pass = statement.passes.iter().position(holds).unwrap_or(0) as u64;
            match qwen3::row_of_cells(of_pass as usize, within) {
                Some(step) => (None, step.layer, Some(step.name)),
                None => (None, None, None),
            }
        }
        TraceMode::None => (None, None, None),
    };
    FirstOutput { pass, position, step_index, layer, step, a: a.to_string(), b: b.to_string() }
}
