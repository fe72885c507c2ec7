//! Faults of this program: a panic becomes one sentence and exit code 70.
//!
//! A panic is a defect here, never an answer about a transcript. Rust would end
//! the process with 101, which no table of exit codes lists.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use super::CommandResult;
use super::error::{Exit, Failure};

/// Keeps the place of the first panic for [`guarded`] instead of printing it:
/// one fault on many threads is still one sentence.
pub(super) fn install() {
    std::panic::set_hook(Box::new(|panic| {
        if let Some(place) = panic.location() {
            PLACE.get_or_init(|| place.to_string());
        }
    }));
}

/// Runs a command; a panic in it is a [`Failure`].
pub(super) fn guarded(command: impl FnOnce() -> CommandResult) -> CommandResult {
    // Nothing that the command has changed is looked at after a panic.
    catch_unwind(AssertUnwindSafe(command)).unwrap_or_else(|payload| {
        let place = PLACE.get().map_or_else(String::new, |place| format!(" at {place}"));
        let message = format!("internal fault{place}: {}", text(payload.as_ref()));
        Err(Failure::new(Exit::Internal, message).hint("please report this with the command"))
    })
}

/// The text of a panic; `panic!` makes a `String` or a `&str` of it.
fn text(payload: &(dyn Any + Send)) -> &str {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

static PLACE: OnceLock<String> = OnceLock::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_fault_of_the_program_with_its_text() {
        let message = |command: fn() -> CommandResult| {
            let failure = guarded(command).unwrap_err();
            assert_eq!(failure.exit.code(), 70);
            failure.message
        };
        assert_eq!(message(|| panic!("a text")), "internal fault: a text");
        let with_number = |step| guarded(|| panic!("step {step}")).unwrap_err().message;
        assert_eq!(with_number(7), "internal fault: step 7");
        assert_eq!(message(|| std::panic::panic_any(7)), "internal fault: no message");
    }

    #[test]
    fn a_panic_on_another_thread_is_caught_too() {
        let command = || {
            rayon::join(|| (), || panic!("on a thread"));
            Ok(Exit::Success)
        };
        assert_eq!(guarded(command).unwrap_err().message, "internal fault: on a thread");
    }

    #[test]
    fn what_does_not_panic_is_passed_on() {
        assert_eq!(guarded(|| Ok(Exit::Mismatch)).unwrap(), Exit::Mismatch);
        let failure = guarded(|| Err(Failure::new(Exit::Usage, "a file"))).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
    }
}
