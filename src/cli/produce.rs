//! Producing: an engine's work, and what it says of itself in a statement.

use std::path::PathBuf;

use super::Exit;
use super::basis::Basis;
use super::error::Failure;
use super::output::Output;
use super::progress::Passes;
use crate::engine::Engine;
use crate::engine::batch::generate_batch;
use crate::engine::emulator::Emulator;
use crate::engine::generate::{Generation, StopRule};
use crate::isa::mma::Simd;
use crate::model::Model;
use crate::transcript::capture;
use crate::transcript::record::{RecordError, Recording};
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
    /// Token ids of each prompt.
    pub(super) prompts: &'a [Vec<u32>],
    /// When to stop.
    pub(super) rule: &'a StopRule,
    /// What is kept of the logits.
    pub(super) logits: LogitsMode,
    /// Of which outputs digests are kept.
    pub(super) trace: TraceMode,
    /// Where outputs are put aside that do not fit in memory: beside the transcript.
    pub(super) aside: Option<PathBuf>,
    /// For notes and progress.
    pub(super) output: &'a Output,
}

/// What came out of an engine, with what it says of itself.
pub(super) struct Made {
    /// Of each prompt, in order.
    pub(super) sequences: Vec<Sequence>,
    /// Where it ran.
    pub(super) environment: Environment,
}

/// What came out of one prompt.
pub(super) struct Sequence {
    /// The tokens and plans.
    pub(super) generation: Generation,
    /// The commitments.
    pub(super) recording: Recording,
    /// What was dispatched for it.
    pub(super) dispatch: Vec<DispatchRow>,
}

/// Positions that a sequence's cache needs.
pub(super) fn positions(prompts: &[Vec<u32>], new_tokens: usize) -> usize {
    prompts.iter().map(Vec::len).max().unwrap_or(0) + new_tokens
}

impl Work<'_> {
    /// Generates on an engine and records.
    pub(super) fn generate<E: Engine>(
        &self,
        engine: &mut E,
    ) -> Result<Vec<(Generation, Recording)>, Failure> {
        let (config, contract) = (self.model.config(), self.basis.contract());
        let mut progress = self.output.progress("running");
        let lengths: Vec<usize> = self.prompts.iter().map(Vec::len).collect();
        let mut passes = Passes::new(&lengths, self.rule.max_new_tokens);
        let mut tap = RecordTap::new(self.logits, self.trace, config.vocab_size, |now| {
            progress.show(&passes.status(now));
        });
        if let Some(folder) = self.aside.as_ref().filter(|folder| folder.is_dir()) {
            tap = tap.aside_in(folder.clone());
        }
        let made = generate_batch(engine, config, contract, self.prompts, self.rule, &mut tap)?;
        let recordings = tap.finish().map_err(|error| {
            let exit = match &error {
                RecordError::Spool { .. } => Exit::Usage,
                RecordError::Twice { .. }
                | RecordError::Row { .. }
                | RecordError::NotTraced { .. } => Exit::Internal,
            };
            Failure::new(exit, error.to_string())
        })?;
        let made = made.filter(|made| made.len() == recordings.len());
        let made =
            made.ok_or_else(|| Failure::new(Exit::Internal, "the generation stopped early"))?;
        Ok(made.into_iter().zip(recordings).collect())
    }
}

/// Does the work on the CPU.
pub(super) fn on_emulator(work: &Work<'_>) -> Result<Made, Failure> {
    let (mma, weights) = (&work.basis.mma, work.model.weights());
    let positions = positions(work.prompts, work.rule.max_new_tokens);
    let mut engine = Emulator::new(mma, Simd::detect(), weights, positions);
    let sequence = |(generation, recording): (Generation, Recording)| Sequence {
        dispatch: capture::products(&generation.plans).into_iter().collect(),
        generation,
        recording,
    };
    let sequences = work.generate(&mut engine)?.into_iter().map(sequence).collect();
    let environment = Environment { engine: EngineName::Emulator, gpu: None };
    Ok(Made { sequences, environment })
}
