//! Choosing an engine, and what it says of itself in a statement.

use super::Exit;
use super::error::Failure;
use super::run::{Choice, Made, Work};
use crate::engine::emulator::Emulator;
use crate::isa::mma::{MmaProfile, Simd};
use crate::isa::profile::Profile;
use crate::recipe::catalog::Catalog;
use crate::transcript::capture;
use crate::transcript::statement::{Artifact, DispatchRow, Engine, Environment};

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

/// The GPU whose arithmetic the stack `native` has, and its catalogue.
pub(super) const PROFILE: &str = "h200";
/// The catalogue of [`PROFILE`].
pub(super) const CATALOGUE: &str = "h200-cublaslt-13.1";

/// Does the work on the chosen engine.
pub(super) fn with(choice: Choice, work: &Work<'_>) -> Result<Made, Failure> {
    match choice {
        Choice::Emulator => emulator(work),
        Choice::Cuda => cuda(work),
        Choice::Auto => match why_no_gpu() {
            None => cuda(work),
            Some(reason) => {
                work.output.note(&format!("note: {reason}; running on the emulator"));
                emulator(work)
            }
        },
    }
}

fn emulator(work: &Work<'_>) -> Result<Made, Failure> {
    let (profile, catalogue, mma) = contract()?;
    let mut engine = Emulator::new(&mma, Simd::detect(), work.model.weights(), work.positions());
    let (generation, recording) = work.generate(&mut engine)?;
    let dispatch = capture::products(&generation.plans).into_iter().collect();
    let environment = Environment { engine: Engine::Emulator, gpu: None };
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

/// Why the CUDA engine cannot be used here; `None` if it can.
#[cfg(not(feature = "cuda"))]
pub(super) fn why_no_gpu() -> Option<String> {
    Some("this build has no CUDA engine".into())
}

#[cfg(not(feature = "cuda"))]
fn cuda(_: &Work<'_>) -> Result<Made, Failure> {
    Err(Failure::new(Exit::Incomplete, "this build has no CUDA engine")
        .hint("build with `cargo build --release --features cuda`, or choose --engine emulator"))
}

/// The GPU in a few words, if it can be used.
#[cfg(not(feature = "cuda"))]
pub(super) fn gpu() -> String {
    String::new()
}

#[cfg(feature = "cuda")]
mod gpu_engine;
#[cfg(feature = "cuda")]
use gpu_engine::cuda;
#[cfg(feature = "cuda")]
pub(super) use gpu_engine::{gpu, why_no_gpu};

/// The vector instructions that the emulator uses here.
pub(super) fn simd() -> &'static str {
    Simd::detect().name()
}
