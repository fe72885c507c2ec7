//! An engine that is timed step by step, its outputs sampled in between.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::BenchError;
use super::sample::Sample;
use crate::engine::{Engine, EngineError, Group};
use crate::num::Tensor;
use crate::plan::{Op, Step};

/// Times every execution of the engine inside.
pub(super) struct Timed<'a, E> {
    engine: E,
    /// Checks outputs, in time of its own.
    pub(super) sample: Sample<'a>,
    /// Time by kind of operation.
    pub(super) operations: BTreeMap<&'static str, Spent>,
    /// Time of the checks.
    pub(super) checking: Duration,
    /// The first difference; it ends the run.
    pub(super) difference: Option<BenchError>,
}

/// What one kind of operation took.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Spent {
    pub(super) executions: usize,
    pub(super) time: Duration,
    pub(super) multiply_adds: u64,
}

impl<'a, E> Timed<'a, E> {
    pub(super) fn new(engine: E, sample: Sample<'a>) -> Self {
        let (operations, checking) = (BTreeMap::new(), Duration::ZERO);
        Self { engine, sample, operations, checking, difference: None }
    }
}

impl<E: Engine<Buffer = Tensor>> Engine for Timed<'_, E> {
    type Buffer = Tensor;

    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn upload(&mut self, tensor: &Tensor) -> Result<Tensor, EngineError> {
        self.engine.upload(tensor)
    }

    fn execute(&mut self, group: &Group<'_>, inputs: &[&Tensor]) -> Result<Tensor, EngineError> {
        let start = Instant::now();
        let output = self.engine.execute(group, inputs)?;
        let spent = self.operations.entry(kind(group.step())).or_default();
        spent.time += start.elapsed();
        spent.executions += 1;
        let parts = group.parts.iter();
        spent.multiply_adds += parts.map(|part| part.step.multiply_adds(&part.pass)).sum::<u64>();

        let start = Instant::now();
        let checked = self.sample.check(group, inputs, &output);
        self.checking += start.elapsed();
        if let Err(difference) = checked {
            let (step, reason) = (group.step().name.clone(), difference.to_string());
            self.difference = Some(difference);
            return Err(EngineError::Refused { step, reason });
        }
        Ok(output)
    }

    fn read_back<'b>(&mut self, buffer: &'b Tensor) -> Result<Cow<'b, Tensor>, EngineError> {
        self.engine.read_back(buffer)
    }
}

/// Nanoseconds of a duration.
pub(super) fn nanos(time: Duration) -> u64 {
    // 2^64 nanoseconds are 584 years.
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The row of the table that a step belongs to.
fn kind(step: &Step) -> &'static str {
    match (step.op, step.layer) {
        (Op::Embedding, _) => "embedding",
        (Op::RmsNorm { .. }, _) => "RMSNorm",
        (Op::Linear { .. }, Some(_)) => "products of the layers",
        (Op::Linear { .. }, None) => "product of the logits",
        (Op::Rope { .. }, _) => "RoPE",
        (Op::Attention { .. }, _) => "attention",
        (Op::Add, _) => "residual addition",
        (Op::SiluMul, _) => "SiLU times up",
        (Op::LastToken, _) => "last token",
        (Op::Argmax, _) => "argmax",
    }
}
