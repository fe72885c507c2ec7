//! Producing: an engine's work, and what it says of itself in a statement.

use super::Exit;
use super::basis::Basis;
use super::error::Failure;
use super::output::Output;
use super::progress::Passes;
use crate::engine::Engine;
use crate::engine::emulator::Emulator;
use crate::engine::generate::{Generation, StopRule, generate};
use crate::isa::mma::Simd;
use crate::model::Model;
use crate::transcript::capture;
use crate::transcript::record::Recording;
use crate::transcript::statement::{
    DispatchRow, Engine as EngineName, Environment, LogitsMode, TraceMode,
};
use crate::transcript::tap::RecordTap;

/// What an engine is to do.
pub(super) struct Work<'a> {
    /// The model.
    pub(super) model: &'a Model,
    /// Stack, profile and catalogue.
    pub(super) basis: &'a Basis,
    /// Token ids of the prompt.
    pub(super) prompt: &'a [u32],
    /// When to stop.
    pub(super) rule: &'a StopRule,
    /// What is kept of the logits.
    pub(super) logits: LogitsMode,
    /// Of which outputs digests are kept.
    pub(super) trace: TraceMode,
    /// For notes and progress.
    pub(super) output: &'a Output,
}

/// What came out of an engine, with what it says of itself.
pub(super) struct Made {
    /// The tokens and plans.
    pub(super) generation: Generation,
    /// The commitments.
    pub(super) recording: Recording,
    /// Environment and dispatch.
    pub(super) claims: Claims,
}

/// What an engine says of itself.
pub(super) struct Claims {
    /// Where it ran.
    pub(super) environment: Environment,
    /// What was dispatched.
    pub(super) dispatch: Vec<DispatchRow>,
}

impl Work<'_> {
    /// Positions that a cache needs.
    pub(super) fn positions(&self) -> usize {
        self.prompt.len() + self.rule.max_new_tokens
    }

    /// Generates on an engine and records.
    pub(super) fn generate<E: Engine>(
        &self,
        engine: &mut E,
    ) -> Result<(Generation, Recording), Failure> {
        let config = self.model.config();
        let mut progress = self.output.progress("running");
        let mut passes = Passes::new(self.prompt.len(), self.rule.max_new_tokens);
        let mut tap = RecordTap::new(self.logits, self.trace, config.vocab_size, |now| {
            progress.show(&passes.status(now));
        });
        let made =
            generate(engine, config, self.basis.contract(), self.prompt, self.rule, &mut tap)?;
        let recording =
            tap.finish().map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
        let made =
            made.ok_or_else(|| Failure::new(Exit::Internal, "the generation stopped early"))?;
        Ok((made, recording))
    }
}

/// Does the work on the CPU.
pub(super) fn on_emulator(work: &Work<'_>) -> Result<Made, Failure> {
    let (mma, weights) = (&work.basis.mma, work.model.weights());
    let mut engine = Emulator::new(mma, Simd::detect(), weights, work.positions());
    let (generation, recording) = work.generate(&mut engine)?;
    let dispatch = capture::products(&generation.plans).into_iter().collect();
    let environment = Environment { engine: EngineName::Emulator, gpu: None };
    let claims = Claims { environment, dispatch };
    Ok(Made { generation, recording, claims })
}
