//! Failures of commands: a sentence, an exit code, and a hint where there is one.

use crate::engine::EngineError;
use crate::engine::device::Unfit;
use crate::engine::generate::GenerateError;
use crate::model::{Kind, ModelError};
use crate::plan::PlanError;
use crate::transcript::{RefusalClass, TranscriptError};

/// What the process exits with; the table of `attest help`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Exit {
    /// Done, or VERIFIED.
    Success,
    /// MISMATCH: authentic, but re-execution differs; or vectors, transcripts or runs that differ.
    Mismatch,
    /// The command line, or a file named on it, cannot be used.
    Usage,
    /// UNTRUSTED.
    Untrusted,
    /// MALFORMED.
    Malformed,
    /// INCOMPLETE: cannot be decided or done here.
    Incomplete,
    /// PARTIAL: what was drawn is exact.
    Partial,
    /// A fault of this program.
    Internal,
}

impl Exit {
    /// The number.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Mismatch => 1,
            Self::Usage => 2,
            Self::Untrusted => 3,
            Self::Malformed => 4,
            Self::Incomplete => 5,
            Self::Partial => 6,
            Self::Internal => 70,
        }
    }
}

/// Why a command stopped.
#[derive(Debug)]
pub(super) struct Failure {
    /// The exit code's meaning.
    pub(super) exit: Exit,
    /// What failed: the object and the numbers.
    pub(super) message: String,
    /// What to do about it.
    pub(super) hint: Option<String>,
}

impl Failure {
    /// A failure without a hint.
    pub(super) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        let exit = match error.kind() {
            Kind::Malformed => Exit::Malformed,
            Kind::Incomplete => Exit::Incomplete,
        };
        let hint = if is_no_bf16(&error) {
            Some(BF16.to_owned())
        } else if let ModelError::NotFound { .. } = error {
            Some(NOT_FOUND.to_owned())
        } else {
            None
        };
        Self { exit, message: error.to_string(), hint }
    }
}

const NOT_FOUND: &str = "name the model's folder, or set $ATTEST_MODELS to a folder of models; \
    nothing is downloaded";

/// Whether a model is refused for what its weights are stored as.
fn is_no_bf16(error: &ModelError) -> bool {
    if let ModelError::UnsupportedField { field, .. } = error {
        let field = field.split('.').next().unwrap_or_default();
        return ["dtype", "torch_dtype", "quantization_config", "compression_config"]
            .contains(&field);
    }
    matches!(error, ModelError::TensorType { .. })
}

const BF16: &str = "this program runs bf16 checkpoints; a converted or quantised one is another \
                    model, with other bits";

impl From<TranscriptError> for Failure {
    fn from(error: TranscriptError) -> Self {
        let exit = match error.class() {
            RefusalClass::Malformed => Exit::Malformed,
            RefusalClass::Untrusted => Exit::Untrusted,
            RefusalClass::Unreadable => Exit::Incomplete,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let exit = match error {
            EngineError::Operand { .. } => Exit::Internal,
            EngineError::Recipe { .. }
            | EngineError::Refused { .. }
            | EngineError::Device { .. } => Exit::Incomplete,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<Unfit> for Failure {
    fn from(error: Unfit) -> Self {
        let hint = match error {
            Unfit::Profile { .. } => EMULATOR,
            Unfit::Memory { .. } => {
                "fewer --max-new-tokens, a smaller model, or --engine emulator, which runs on the \
                 CPU with the same bits"
            }
        };
        Self::new(Exit::Incomplete, error.to_string()).hint(hint)
    }
}

/// What to do without a GPU that can be used.
pub(super) const EMULATOR: &str = "`--engine emulator` runs on the CPU with the same bits";

impl From<GenerateError> for Failure {
    fn from(error: GenerateError) -> Self {
        match error {
            GenerateError::Engine(error) => error.into(),
            GenerateError::Plan(PlanError::Unlisted { .. }) => {
                Self::new(Exit::Incomplete, error.to_string())
            }
            GenerateError::Plan(_) => Self::new(Exit::Internal, error.to_string()),
            GenerateError::EmptyPrompt
            | GenerateError::Batch { .. }
            | GenerateError::Prompt { .. }
            | GenerateError::NothingToGenerate
            | GenerateError::TokenRange { .. }
            | GenerateError::Context { .. } => Self::new(Exit::Usage, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::device::{Footprint, profile_of};
    use crate::recipe::catalog::Catalog;

    #[test]
    fn what_a_gpu_cannot_do_is_incomplete_and_says_what_would_help() {
        let unknown = profile_of("NVIDIA L40S", (8, 9)).unwrap_err();
        let small = Footprint { weights: 2, ..Footprint::default() }.check(1).unwrap_err();
        for (unfit, hint) in [(unknown, "--engine emulator"), (small, "fewer --max-new-tokens")] {
            let failure = Failure::from(unfit.clone());
            assert_eq!((failure.exit.code(), failure.message), (5, unfit.to_string()));
            assert!(failure.hint.unwrap().contains(hint));
        }
    }

    #[test]
    fn a_catalogue_of_other_versions_is_incomplete() {
        let catalog = Catalog::by_id("h200-cublaslt-13.1").unwrap();
        let reason = catalog.covers("NVIDIA H200", "13.0", "130200").unwrap_err();
        let refused = EngineError::Refused { step: "environment".into(), reason };
        let failure = Failure::from(refused);
        assert_eq!(failure.exit.code(), 5);
        assert_eq!(
            failure.message,
            "environment: cuBLASLt is \"130200\"; catalogue h200-cublaslt-13.1 was measured with \
             130100"
        );
    }
}
