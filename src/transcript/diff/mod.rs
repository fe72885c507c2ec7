//! Two transcripts compared claim by claim, without a model.
//!
//! What two files state is compared, not whether it is true: no signature is checked
//! and nothing is executed. [`fields`] walks the statements, [`outputs`] the recorded
//! logits and step outputs.

pub mod fields;
pub mod outputs;

use serde::Serialize;

use super::Transcript;
use fields::FieldDifference;
use outputs::{LogitsComparison, Outputs, TraceComparison};

/// What differs between two transcripts, A and B.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Comparison {
    /// Fields that differ, in the order of the statement, the envelope's last.
    pub fields: Vec<FieldDifference>,
    /// The rows of logits.
    pub logits: Outputs<LogitsComparison>,
    /// The outputs of steps.
    pub trace: Outputs<TraceComparison>,
}

impl Comparison {
    /// Whether anything differs that a re-execution is checked against.
    pub fn is_different(&self) -> bool {
        let logits = match &self.logits {
            Outputs::Compared(logits) => logits.differing_rows > 0,
            Outputs::NotCompared { .. } => false,
        };
        let trace = match &self.trace {
            Outputs::Compared(trace) => trace.differing > 0,
            Outputs::NotCompared { .. } => false,
        };
        // Outputs that are not compared differ in a field: their count, form or mode.
        logits || trace || self.fields.iter().any(|field| field.counts)
    }
}

/// Compares two transcripts.
pub fn compare(a: &Transcript, b: &Transcript) -> Comparison {
    Comparison {
        fields: fields::differences(a, b),
        logits: outputs::logits(a, b),
        trace: outputs::trace(a, b),
    }
}
