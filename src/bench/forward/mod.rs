//! A whole forward pass, as a verifier runs it: time by kind of operation, and
//! memory.
//!
//! All passes are laid out and run together by [`crate::engine::run`]. The very
//! outputs that are timed are checked: after each step some of them are computed
//! again by the scalar text ([`sample`]), in time that is not counted, and one
//! differing bit ends the run without a figure. Small models are compared in full
//! elsewhere (`tests/tiny.rs`).

mod memory;
mod sample;
#[cfg(test)]
mod tests;
mod timed;

use std::time::Instant;

use serde::Serialize;

use super::BenchError;
use super::decimal::{Decimal, per_second, quotient};
use crate::engine::emulator::Emulator;
use crate::engine::generate::{GenerateError, layout};
use crate::engine::{Engine, Flow, Progress, Tap, run};
use crate::isa::mma::{MmaProfile, Simd};
use crate::model::Model;
use crate::num::Tensor;
use crate::plan::{Contract, Pass, Plan, Step};
use memory::Watch;
use sample::Sample;
use timed::Timed;

pub use memory::Memory;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct ForwardRequest<'a> {
    /// The model.
    pub model: &'a Model,
    /// The arithmetic.
    pub mma: &'a MmaProfile,
    /// The form of the lanes.
    pub simd: Simd,
    /// Tokens of the prompt (count, at least 1).
    pub prompt_tokens: usize,
    /// Tokens that are generated after it (count, at least 1).
    pub generated: usize,
    /// Which positions have logits.
    pub logits: Logits,
}

/// Which positions have logits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Logits {
    /// Those that choose a token: one prefill, then one pass a token.
    Last,
    /// Every position: a pass a token from the first on.
    All,
}

/// What was run and how long it took.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ForwardReport {
    /// The model's name.
    pub model: String,
    /// Its layers (count).
    pub layers: usize,
    /// The form of the lanes.
    pub simd: &'static str,
    /// Tokens of the prompt (count).
    pub prompt_tokens: usize,
    /// Tokens generated (count).
    pub generated: usize,
    /// Which positions have logits.
    pub logits: Logits,
    /// Positions that went through the layers: the last token goes through none.
    pub positions: usize,
    /// Rows of logits (count).
    pub logits_rows: usize,
    /// Steps of which outputs were compared with the scalar text (count).
    pub checked_steps: usize,
    /// Outputs compared (count); none differs.
    pub checked_outputs: usize,
    /// Seconds from the first step to the last, without the comparisons.
    pub seconds: Decimal,
    /// The same for each position.
    pub seconds_per_position: Decimal,
    /// Multiply-adds of tensor-core products (count).
    pub multiply_adds: u64,
    /// Over the whole run, 10^9 a second.
    pub gmac_per_s: Decimal,
    /// Where the time went, longest first.
    pub operations: Vec<Operation>,
    /// Memory; `None` where the system does not tell.
    pub memory: Option<Memory>,
}

/// Time of one kind of operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Operation {
    /// What it is.
    pub operation: &'static str,
    /// Executions (count): one for all passes of a step, or of a part of them.
    pub executions: usize,
    /// Time.
    pub seconds: Decimal,
    /// Part of the whole run.
    pub share: Decimal,
    /// Multiply-adds of tensor-core products (count).
    pub multiply_adds: u64,
    /// Their rate, 10^9 a second.
    pub gmac_per_s: Decimal,
}

/// Runs, checks and measures.
///
/// # Errors
/// [`BenchError::Differs`] if a sampled output is not the scalar text's;
/// [`BenchError::Generate`] if the model cannot take so many tokens;
/// [`BenchError::Engine`].
pub fn forward(
    request: &ForwardRequest<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ForwardReport, BenchError> {
    let ForwardRequest { model, mma, simd, .. } = *request;
    let positions = request.prompt_tokens + request.generated;
    let engine = Emulator::new(mma, simd, model.weights(), positions);
    measure(request, engine, progress)
}

/// As [`forward`], on any engine.
fn measure<E: Engine<Buffer = Tensor>>(
    request: &ForwardRequest<'_>,
    engine: E,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ForwardReport, BenchError> {
    let (plans, tokens) = passes(request)?;
    let sample = Sample::new(request.mma, request.model.weights());
    let mut engine = Timed::new(engine, sample);
    let watch = Watch::start();
    let start = Instant::now();
    let ended = run(&mut engine, &plans, &tokens, &mut Telling { progress });
    let elapsed = start.elapsed();
    let memory = watch.stop();
    if let Some(difference) = engine.difference {
        return Err(difference);
    }
    ended?;
    let nanos = timed::nanos(elapsed.saturating_sub(engine.checking));
    let positions: usize = tokens.iter().map(Vec::len).sum();
    let multiply_adds = engine.operations.values().map(|spent| spent.multiply_adds).sum();
    Ok(ForwardReport {
        model: request.model.name().to_owned(),
        layers: request.model.config().num_hidden_layers,
        simd: request.simd.name(),
        prompt_tokens: request.prompt_tokens,
        generated: request.generated,
        logits: request.logits,
        positions,
        logits_rows: plans.len(),
        checked_steps: engine.sample.steps,
        checked_outputs: engine.sample.outputs,
        seconds: seconds(nanos),
        seconds_per_position: quotient(nanos, SECOND * positions as u64),
        multiply_adds,
        gmac_per_s: per_second(multiply_adds, nanos),
        operations: table(&engine, nanos),
        memory,
    })
}

/// The passes, over token ids of a fixed sequence: what a token is changes no cost.
fn passes(request: &ForwardRequest<'_>) -> Result<(Vec<Plan>, Vec<Vec<u32>>), BenchError> {
    if request.generated == 0 {
        return Err(GenerateError::NothingToGenerate.into());
    }
    let config = request.model.config();
    let vocabulary = config.vocab_size.max(1);
    // A step that shares no factor with a power of two.
    let id = |index: usize| (index.wrapping_mul(7919) % vocabulary) as u32;
    let ids: Vec<u32> = (0..request.prompt_tokens + request.generated).map(id).collect();
    let prompt = match request.logits {
        Logits::Last => request.prompt_tokens,
        Logits::All => request.prompt_tokens.min(1),
    };
    let (prompt, generated) = ids.split_at(prompt);
    Ok(layout(config, Contract::Native, prompt, generated)?)
}

fn table<E>(engine: &Timed<'_, E>, nanos: u64) -> Vec<Operation> {
    let mut spent: Vec<_> = engine.operations.iter().collect();
    spent.sort_by_key(|(_, spent)| std::cmp::Reverse(spent.time));
    let mut table: Vec<Operation> = spent
        .into_iter()
        .map(|(&operation, spent)| {
            let own = timed::nanos(spent.time);
            Operation {
                operation,
                executions: spent.executions,
                seconds: seconds(own),
                share: quotient(own, nanos),
                multiply_adds: spent.multiply_adds,
                gmac_per_s: per_second(spent.multiply_adds, own),
            }
        })
        .collect();
    let steps: u64 = engine.operations.values().map(|spent| timed::nanos(spent.time)).sum();
    let rest = nanos.saturating_sub(steps);
    table.push(Operation {
        operation: "between steps",
        executions: 0,
        seconds: seconds(rest),
        share: quotient(rest, nanos),
        multiply_adds: 0,
        gmac_per_s: Decimal::default(),
    });
    table
}

/// A tap that looks at nothing and tells how far the run is.
struct Telling<'p> {
    progress: &'p mut dyn FnMut(u64, u64),
}

impl Tap for Telling<'_> {
    fn wants(&self, _: &Pass, _: usize, _: &Step) -> bool {
        false
    }

    fn observe(&mut self, _: &Pass, _: usize, _: &Step, _: &Tensor) -> Flow {
        Flow::Continue
    }

    fn progress(&mut self, progress: &Progress<'_>) -> Flow {
        (self.progress)(progress.done, progress.total);
        Flow::Continue
    }
}

fn seconds(nanos: u64) -> Decimal {
    quotient(nanos, SECOND)
}

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;
