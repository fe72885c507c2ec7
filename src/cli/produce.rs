//! Producing: an engine's work, and what it says of itself in a statement.

use super::Exit;
use super::error::Failure;
use super::output::Output;
use super::progress::Passes;
use crate::engine::Engine;
use crate::engine::emulator::Emulator;
use crate::engine::generate::{Generation, StopRule, generate};
use crate::isa::mma::{MmaProfile, Simd};
use crate::isa::profile::Profile;
use crate::model::Model;
use crate::plan::Stack;
use crate::recipe::catalog::Catalog;
use crate::transcript::capture;
use crate::transcript::record::Recording;
use crate::transcript::statement::{
    Artifact, DispatchRow, Engine as EngineName, Environment, LogitsMode, TraceMode,
};
use crate::transcript::tap::RecordTap;

/// The GPU whose arithmetic the stack `native` has.
pub(super) const PROFILE: &str = "h200";
/// The catalogue of [`PROFILE`].
pub(super) const CATALOGUE: &str = "h200-cublaslt-13.1";

/// What an engine is to do.
pub(super) struct Work<'a> {
    /// The model.
    pub(super) model: &'a Model,
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
    /// GPU profile.
    pub(super) profile: Artifact,
    /// Dispatch catalogue.
    pub(super) catalogue: Artifact,
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
        let made = generate(engine, config, Stack::Native, self.prompt, self.rule, &mut tap)?;
        let recording =
            tap.finish().map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
        let made =
            made.ok_or_else(|| Failure::new(Exit::Internal, "the generation stopped early"))?;
        Ok((made, recording))
    }
}

/// Does the work on the CPU.
pub(super) fn on_emulator(work: &Work<'_>) -> Result<Made, Failure> {
    let (profile, catalogue, mma) = contract()?;
    let mut engine = Emulator::new(&mma, Simd::detect(), work.model.weights(), work.positions());
    let (generation, recording) = work.generate(&mut engine)?;
    let dispatch = capture::products(&generation.plans).into_iter().collect();
    let environment = Environment { engine: EngineName::Emulator, gpu: None };
    let claims = Claims { profile, catalogue, environment, dispatch };
    Ok(Made { generation, recording, claims })
}

/// Profile and catalogue as a statement names them, and the instruction.
pub(super) fn contract() -> Result<(Artifact, Artifact, MmaProfile), Failure> {
    let internal = |error: String| Failure::new(Exit::Internal, error);
    let profile = Profile::by_id(PROFILE).map_err(|error| internal(error.to_string()))?;
    let catalog = Catalog::by_id(CATALOGUE).map_err(|error| internal(error.to_string()))?;
    let mma = profile.mma("bf16").copied();
    let mma = mma.ok_or_else(|| internal(format!("profile {PROFILE} has no bf16 instruction")))?;
    Ok((
        Artifact { id: profile.id, digest: profile.digest },
        Artifact { id: CATALOGUE.into(), digest: catalog.digest() },
        mma,
    ))
}
