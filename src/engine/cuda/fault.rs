//! The engine's errors, each naming its step.

use crate::engine::EngineError;
use crate::plan::Step;

pub(super) fn expect(
    step: &Step,
    what: &str,
    expected: usize,
    found: usize,
) -> Result<(), EngineError> {
    if expected == found {
        return Ok(());
    }
    Err(fault(step, format!("{what}: {found}, expected {expected}")))
}

pub(super) fn fault(step: &Step, what: String) -> EngineError {
    EngineError::Operand { step: step.name.clone(), what }
}

pub(super) fn unknown_recipe(step: &Step) -> EngineError {
    EngineError::Recipe { step: step.name.clone(), recipe: step.recipe.to_string(), engine: "cuda" }
}

/// Wraps a library's error; for `map_err`.
pub(super) fn device_error<E: std::fmt::Display>(
    step: &str,
    call: &'static str,
) -> impl FnOnce(E) -> EngineError {
    let step = step.to_owned();
    move |error| EngineError::Device { step, call, reason: error.to_string() }
}
