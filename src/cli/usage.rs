//! Errors of the command line itself, before there is a command to run.

use std::process::ExitCode;

use clap::error::ErrorKind;

use super::error::{Exit, Failure};
use super::output::Output;

/// Prints what clap says, and where it is an error and the command line asks for
/// JSON, the error as JSON like that of any other failure.
pub(super) fn refused(error: &clap::Error) -> ExitCode {
    // A closed pipe: nobody reads it.
    let _ = error.print();
    if !error.use_stderr() {
        // Help, or the version, was asked for.
        return ExitCode::from(Exit::Success.code());
    }
    if asks_for_json(std::env::args_os().skip(1)) {
        let json = Output::new(true, false);
        json.failure_as_json(&failure(error));
    }
    ExitCode::from(Exit::Usage.code())
}

/// Whether `--json` stands among the arguments. What they mean is not known, as clap
/// refused them; after `--` there are no options.
fn asks_for_json(arguments: impl Iterator<Item = std::ffi::OsString>) -> bool {
    arguments.take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

/// The sentence without clap's advice, which names usage and other options.
fn failure(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let help_instead = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    let sentence = if error.kind() == help_instead {
        "a command is missing".to_owned()
    } else {
        let paragraph = text.split("\n\n").next().unwrap_or(&text);
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        words.join(" ").trim_start_matches("error: ").to_owned()
    };
    Failure::new(Exit::Usage, sentence).hint("`attest help` lists commands and options")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_asked_for_anywhere_before_the_end_of_options() {
        let asks = |arguments: &[&str]| asks_for_json(arguments.iter().map(Into::into));
        assert!(asks(&["--json"]) && asks(&["verify", "--x", "--json"]));
        assert!(!asks(&[]) && !asks(&["verify", "json"]) && !asks(&["verify", "--", "--json"]));
    }
}
