//! Canonical text of a plan, and its digest.
//!
//! The text is what `attest plan --canonical` prints: anyone can hash it with
//! `sha256sum` and compare (`spec/plan.md`).

use std::fmt::Write as _;

use super::{Operand, Plan, Step};
use crate::num::{Digest, sha256};

/// Version of the plan's meaning; any change of any output bit raises it.
pub const PLAN_VERSION: u32 = 1;

impl Plan {
    /// The canonical text: a header of three lines, then one line a step, each
    /// ended by a line feed.
    pub fn canonical(&self) -> String {
        let mut text = format!(
            "attest-plan {PLAN_VERSION}\nstack {}\npass start={} tokens={}\n",
            self.stack.name(),
            self.pass.start,
            self.pass.tokens
        );
        for step in self.steps.iter() {
            text.push_str(&step.canonical());
            text.push('\n');
        }
        text
    }

    /// SHA-256 of the canonical text.
    pub fn digest(&self) -> Digest {
        sha256(&[self.canonical().as_bytes()])
    }
}

impl Step {
    /// One line: name, operation, recipe, operands, output.
    pub fn canonical(&self) -> String {
        let mut line = format!("{} {} {}", self.name, self.op, self.recipe);
        for operand in &self.inputs {
            line.push(' ');
            line.push_str(&operand.canonical());
        }
        // Writing to a String cannot fail.
        let _ = write!(
            line,
            " -> v{} {} {}x{}",
            self.output.0,
            self.dtype.name(),
            self.rows,
            self.columns
        );
        if let Some(slot) = self.keeps {
            let _ = write!(line, " {slot}");
        }
        line
    }
}

impl Operand {
    fn canonical(&self) -> String {
        match self {
            Self::Tokens => "tokens".into(),
            Self::Value(id) => format!("v{}", id.0),
            Self::Weight(name) => name.clone(),
            Self::Cache(slot) => slot.to_string(),
        }
    }
}
