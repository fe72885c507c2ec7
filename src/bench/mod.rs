//! Speed of the emulator, measured so that the figures can be believed.
//!
//! Three rules hold for every measurement here. A result is compared with the
//! oracle before anything is timed, and one differing bit stops the measurement
//! ([`Checked`]). Things that are compared in speed are timed in turn, round
//! after round, in one run ([`alternate`]): a busy machine slows all of them. And
//! a report says what machine it was ([`Machine`]).
//!
//! Nothing here takes part in a verdict. Beside the command line this is the only
//! module that reads the clock and, under `/proc`, facts of the machine.

mod attention;
mod calibrate;
mod decimal;
mod forward;
mod gemm;
mod hash;
mod machine;
mod mufu;
mod operands;
mod rounds;
mod sgemm;

pub use attention::{AttentionReport, AttentionRequest, Heads, LengthReport, attention};
pub use calibrate::{Calibration, calibrate};
pub use decimal::{Decimal, per_second, quotient};
pub use forward::{ForwardReport, ForwardRequest, Logits, Memory, Operation, forward};
pub use gemm::{FormReport, GemmReport, GemmRequest, ProfileReport, Shape, ShapeReport, gemm};
pub use hash::{HashReport, hash};
pub use machine::Machine;
pub use mufu::{FunctionReport, MufuReport, SliceReport, mufu};
use std::fmt::Debug;

pub use rounds::{Budget, Checked, Figures, Times, alternate};

use crate::engine::EngineError;
use crate::engine::generate::GenerateError;
use crate::isa::mma::MmaProfile;
use crate::isa::profile::Profile;
use crate::recipe::RecipeError;

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A result is not the oracle's: a fault of ours, and no rate is reported.
    #[error(
        "{what}: output {index} is {found} where the {oracle} has {expected}; no rate is reported"
    )]
    Differs {
        /// What computed the result.
        what: String,
        /// Which output, in row-major order.
        index: usize,
        /// What it is compared with.
        oracle: &'static str,
        /// The oracle's bits, hexadecimal.
        expected: String,
        /// The bits found.
        found: String,
    },
    /// A profile is not there, or lacks the instruction.
    #[error("profile {id}: {problem}")]
    Profile {
        /// The profile.
        id: String,
        /// What is wrong.
        problem: String,
    },
    /// A size that no product has.
    #[error("shape {text} is not MxNxK with three numbers from 1 on whose products fit the memory")]
    Shape {
        /// What was given.
        text: String,
    },
    /// A step that the check cannot follow.
    #[error("{step}: {problem}")]
    Step {
        /// The step.
        step: String,
        /// Why.
        problem: String,
    },
    /// A recipe refused the operands made for it.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// No threads to measure on.
    #[error("a pool of {threads} threads cannot be made: {reason}")]
    Threads {
        /// How many were wanted.
        threads: usize,
        /// The system's words.
        reason: String,
    },
    /// The passes could not be laid out.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A step could not be executed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// The oracle's name in messages.
const SCALAR: &str = "scalar text";

/// Compares results bit by bit; returns how many there were. Each expectation has
/// its place in the whole.
fn same<T: PartialEq + Debug>(
    what: &str,
    oracle: &'static str,
    expected: impl IntoIterator<Item = (usize, T)>,
    found: &[T],
) -> Result<usize, BenchError> {
    let mut compared = 0;
    for (index, expected) in expected {
        let found = found.get(index);
        if found != Some(&expected) {
            let (what, expected) = (what.into(), format!("{expected:?}"));
            let found = found.map_or_else(|| "missing".into(), |found| format!("{found:?}"));
            return Err(BenchError::Differs { what, index, oracle, expected, found });
        }
        compared += 1;
    }
    Ok(compared)
}

/// One thread for work that is divided between the threads of a pool.
fn one_thread() -> Result<rayon::ThreadPool, BenchError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.map_err(|error| BenchError::Threads { threads: 1, reason: error.to_string() })
}

/// The bf16 block FMA of a profile.
fn bf16(id: &str) -> Result<MmaProfile, BenchError> {
    let refused = |problem: String| BenchError::Profile { id: id.into(), problem };
    let profile = Profile::by_id(id).map_err(|error| refused(error.to_string()))?;
    profile.mma("bf16").copied().ok_or_else(|| refused("no bf16 instruction".into()))
}
