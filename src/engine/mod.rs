//! Engines execute steps; one loop drives them and shows every output to a tap.
//!
//! Producing is the CUDA engine with a recording tap, verifying the emulator
//! with a comparing tap. Engines see steps, never model code.

pub mod batch;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod device;
pub mod emulator;
pub mod generate;
pub mod heads;
pub mod linear;
pub mod memory;
pub mod outlook;
pub mod product;
mod schedule;

pub use schedule::{Given, launch, run, run_part, split};

use std::borrow::Cow;
use std::ops::Range;

use crate::num::Tensor;
use crate::plan::{Pass, Step};

/// The same step of one or more passes, of one sequence or several, executed
/// together.
///
/// Rows of all parts are stacked in order. Rows are independent, so stacking
/// cannot change a bit; it lets a weight be read once for a whole generation, or
/// for a pass of every sequence.
#[derive(Debug)]
pub struct Group<'a> {
    /// Which passes take part: those of one sequence in order of their positions.
    pub parts: Vec<Part<'a>>,
}

/// One pass's share of a [`Group`].
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The pass.
    pub pass: Pass,
    /// Its step.
    pub step: &'a Step,
}

/// Consecutive parts of one sequence in a stacked value with one row a token: what
/// attends to one cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rows {
    /// The sequence.
    pub sequence: usize,
    /// Its rows of the stacked value.
    pub rows: Range<usize>,
}

impl Group<'_> {
    /// Rows of the stacked output.
    pub fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.step.rows).sum()
    }

    /// Position of every row of a stacked value that has one row a token.
    pub fn positions(&self) -> Vec<usize> {
        self.parts
            .iter()
            .flat_map(|part| part.pass.start..part.pass.start + part.pass.tokens)
            .collect()
    }

    /// The rows of a stacked value that has one row a token, by sequence.
    pub fn sequences(&self) -> Vec<Rows> {
        let mut found: Vec<Rows> = Vec::new();
        let mut end = 0;
        for part in &self.parts {
            let start = end;
            end += part.pass.tokens;
            match found.last_mut() {
                Some(last) if last.sequence == part.pass.sequence => last.rows.end = end,
                Some(_) | None => {
                    found.push(Rows { sequence: part.pass.sequence, rows: start..end });
                }
            }
        }
        found
    }

    /// The step of the first part; all parts share operation, names and columns, and
    /// but for a linear step the recipe.
    pub fn step(&self) -> &Step {
        self.parts[0].step
    }
}

/// Why an engine could not execute a step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// An operand is missing or of the wrong shape or type; a fault of ours.
    #[error("{step}: {what}")]
    Operand {
        /// The step.
        step: String,
        /// What is wrong with which operand.
        what: String,
    },
    /// The step's recipe is not one this engine knows.
    #[error("{step}: recipe {recipe} is not implemented by the {engine} engine")]
    Recipe {
        /// The step.
        step: String,
        /// The recipe.
        recipe: String,
        /// The engine.
        engine: &'static str,
    },
    /// A recipe refused its operands.
    #[error("{step}: {reason}")]
    Refused {
        /// The step.
        step: String,
        /// The recipe's own words.
        reason: String,
    },
    /// The device or one of its libraries failed.
    #[error("{step}: {call} failed: {reason}")]
    Device {
        /// The step, or the phase if no step was running.
        step: String,
        /// The call.
        call: &'static str,
        /// The library's own words.
        reason: String,
    },
}

/// Executes steps.
pub trait Engine {
    /// A stacked value on the engine's device.
    type Buffer;

    /// Name used in transcripts: `emulator` or `cuda`.
    fn name(&self) -> &'static str;

    /// Puts a tensor on the device.
    ///
    /// # Errors
    /// [`EngineError::Device`].
    fn upload(&mut self, tensor: &Tensor) -> Result<Self::Buffer, EngineError>;

    /// Executes one step for all parts of the group and returns the stacked
    /// output. `inputs` are the operands that are values or tokens, in order;
    /// weights and caches are the engine's own. If the step keeps its rows, the
    /// engine has also stored each at its position, in the slot of its sequence.
    ///
    /// # Errors
    /// Any [`EngineError`].
    fn execute(
        &mut self,
        group: &Group<'_>,
        inputs: &[&Self::Buffer],
    ) -> Result<Self::Buffer, EngineError>;

    /// A value on the host, `[rows, columns]`; a copy where the engine's device is
    /// another.
    ///
    /// # Errors
    /// [`EngineError::Device`].
    fn read_back<'b>(&mut self, buffer: &'b Self::Buffer) -> Result<Cow<'b, Tensor>, EngineError>;
}

/// Whether to go on after an observation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Stop: the tap has seen enough.
    Stop,
}

/// Sees outputs as they appear.
pub trait Tap {
    /// Whether [`Self::observe`] wants this step's output; reading it back costs time.
    fn wants(&self, pass: &Pass, index: usize, step: &Step) -> bool;

    /// Sees the output of step `index` of one pass: that pass's rows only.
    fn observe(&mut self, pass: &Pass, index: usize, step: &Step, output: &Tensor) -> Flow;

    /// Whether [`Self::stopped`] wants the operands of a step whose output stopped the
    /// run; reading them back costs time.
    fn wants_operands(&self) -> bool {
        false
    }

    /// Is handed, after [`Self::observe`] has stopped the run, the operands of that step
    /// that are values or tokens, in order: that pass's rows only. The engine's caches
    /// are as the step found them or, if it keeps its rows, left them.
    fn stopped(&mut self, _operands: Vec<Tensor>) {}

    /// Is told before every step, and at the end, how far a run is.
    fn progress(&mut self, _progress: &Progress<'_>) -> Flow {
        Flow::Continue
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Multiply-adds done.
    pub done: u64,
    /// Multiply-adds of the whole run.
    pub total: u64,
    /// Index of the step that comes next, or of the last one at the end.
    pub index: usize,
    /// That step, of any pass.
    pub step: &'a Step,
    /// Layers of the plan.
    pub layers: usize,
}

/// A tap that looks at nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTap;

impl Tap for NoTap {
    fn wants(&self, _: &Pass, _: usize, _: &Step) -> bool {
        false
    }

    fn observe(&mut self, _: &Pass, _: usize, _: &Step, _: &Tensor) -> Flow {
        Flow::Continue
    }
}
