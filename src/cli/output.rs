//! Printing: results to stdout, diagnostics to stderr.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::io::{ErrorKind, Write as _};

use super::error::Failure;
use super::progress::Progress;

/// How to print.
#[derive(Debug)]
pub(super) struct Output {
    /// One JSON value on stdout instead of text.
    pub(super) json: bool,
    /// Nothing but the exit code.
    pub(super) quiet: bool,
    /// Why a result could not be printed, if one could not.
    lost: OnceCell<String>,
}

impl Output {
    /// Prints as the command line asks.
    pub(super) fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet, lost: OnceCell::new() }
    }

    /// Why a result could not be printed: a report that nobody can read must not
    /// end in success.
    pub(super) fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Prints a result: the JSON value or the text.
    pub(super) fn result(&self, json: &serde_json::Value, text: &str) {
        if self.quiet {
            return;
        }
        let mut stdout = std::io::stdout().lock();
        let line = if self.json { json.to_string() } else { text.trim_end().to_owned() };
        match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
            Ok(()) => {}
            // A closed pipe is the reader's choice, not a failure.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) => drop(self.lost.set(error.to_string())),
        }
    }

    /// Prints a diagnostic.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr().lock(), "{}", plain_lines(text));
        }
    }

    /// Prints a failure: to stderr, and as JSON to stdout if that is wanted.
    pub(super) fn failure(&self, failure: &Failure) {
        self.note(&format!("error: {}", failure.message));
        if let Some(hint) = &failure.hint {
            self.note(&format!("hint: {hint}"));
        }
        if self.json {
            self.failure_as_json(failure);
        }
    }

    /// Prints a failure as JSON to stdout.
    pub(super) fn failure_as_json(&self, failure: &Failure) {
        let error = serde_json::json!({
            "error": failure.message, "hint": failure.hint, "exit": failure.exit.code(),
        });
        self.result(&error, "");
    }

    /// Progress of something that may take longer than a second.
    pub(super) fn progress(&self, what: &'static str) -> Progress {
        Progress::new(what, !self.quiet)
    }
}

/// Makes a text from elsewhere safe for a terminal and for one line: control
/// characters are spelled out, so that a file can neither move the cursor nor
/// add a line that looks like ours.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    // Besides control characters, those that reverse the order of a line.
    let harmful =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if harmful(c) { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

/// As [`plain`], but the text keeps its lines.
pub(super) fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}
