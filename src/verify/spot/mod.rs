//! A spot check: drawn cells computed again from committed rows, and every chosen token.
//!
//! A cell is one layer at one position. If every cell's outputs follow from its
//! committed inputs, the whole forward pass does, one cell after the other; so a run
//! that is false somewhere has a cell whose outputs do not follow. The draw finds it
//! with the probability that [`probability`] gives. `spec/verification.md`, P1 to P8.

mod cells;
mod probability;

use std::collections::BTreeSet;

use super::execution::{How, Work};
use super::report::{Outcome, Report, Subject, Verdict};
use super::sampling::check_chosen;
use crate::model::Content;
use crate::transcript::Transcript;
use crate::transcript::cells::{Cell, Opened, OpeningError, drawn};
use crate::transcript::opening::Challenge;

use cells::{Checked, Spots};

/// Checks the cells of a draw, then the final norm, the head and the choice of every
/// generated token; then sampling and coverage.
pub(super) fn check(
    report: &mut Report,
    transcript: &Transcript,
    model: &Content,
    mut work: Work<'_>,
    how: How<'_>,
    challenge: &Challenge,
) {
    let (cells, opened) = match openings(transcript, &work, challenge) {
        Ok(found) => found,
        Err(NotOpen::Undecided(reason)) => {
            report.undecided(Subject::Execution, reason);
            return;
        }
        Err(NotOpen::Malformed(reason)) => {
            report.fail(Subject::Encoding, Verdict::Malformed, reason);
            return;
        }
    };
    let spots = Spots { transcript, opened: &opened, cells: &cells, model };
    let checked = spots.check(&mut work, how);
    if let Err(error) = model.weights().check_unchanged() {
        report.undecided(Subject::Execution, error.to_string());
        return;
    }
    let statement = transcript.statement();
    let chosen = match checked {
        Err(reason) => {
            report.undecided(Subject::Execution, reason);
            return;
        }
        Ok(Checked::Differs(finding)) => {
            let (detail, finding) = (finding.to_string(), Some(*finding));
            let leads_to = Verdict::Mismatch;
            report.push(Subject::Execution, Outcome::Failed { leads_to, detail, finding });
            return;
        }
        Ok(Checked::Equal { chosen }) => check_chosen(statement, Some(&chosen)),
    };
    if let Err(differs) = work.recorded.check_logits() {
        let detail = match chosen {
            Ok(()) => differs,
            Err(token) => format!("{differs}; {token}"),
        };
        report.fail(Subject::Execution, Verdict::Mismatch, detail);
        return;
    }
    let tokens = statement.tokens_out.len();
    report.pass(
        Subject::Execution,
        format!(
            "the {} outputs of {} cells and {tokens} rows of logits equal the re-execution's, 0 bits \
             differ",
            3 * cells.len(),
            cells.len()
        ),
    );
    match chosen {
        Ok(()) => report.pass(
            Subject::Sampling,
            format!(
                "{tokens} tokens are the largest logit's, the text ends by {}",
                statement.finish.word()
            ),
        ),
        Err(detail) => report.fail(Subject::Sampling, Verdict::Mismatch, detail),
    }
    let of = work.recorded.cells().map_or(0, |layout| layout.cells());
    report.push(Subject::Coverage, coverage(cells.len() as u64, of, tokens));
}

/// Why nothing can be checked.
enum NotOpen {
    Undecided(String),
    Malformed(String),
}

impl From<OpeningError> for NotOpen {
    fn from(error: OpeningError) -> Self {
        match error {
            OpeningError::None => {
                Self::Undecided(format!("the file has no openings: {UNANSWERED}"))
            }
            OpeningError::Wrong { reason } => Self::Malformed(reason),
            OpeningError::Unreadable(error) => Self::Undecided(error.to_string()),
        }
    }
}

/// The cells of the challenge, and their openings if they lead to the trace's root.
fn openings(
    transcript: &Transcript,
    work: &Work<'_>,
    challenge: &Challenge,
) -> Result<(BTreeSet<Cell>, Opened), NotOpen> {
    let undecided = |reason: String| NotOpen::Undecided(reason);
    let digest = transcript.digest();
    if challenge.transcript != digest {
        let other = challenge.transcript;
        return Err(undecided(format!("the challenge is for transcript {other}, not this one")));
    }
    let layout = work.recorded.cells().ok_or_else(|| {
        let traced = "the trace is not of cells (--trace cells)";
        undecided(format!("{traced}, so single cells cannot be checked"))
    })?;
    // Whatever the file opens must be what the statement commits to.
    let opened = Opened::check_all(transcript, layout)?;
    let draw = &challenge.draw;
    match transcript.opening().and_then(|opening| opening.draw.as_ref()) {
        None => {}
        Some(answered) if answered == draw => {}
        Some(_) => {
            let other = "the openings answer another challenge";
            return Err(undecided(format!("{other}: {UNANSWERED}")));
        }
    }
    Ok((drawn(digest, draw, layout.positions, layout.layers), opened))
}

/// Checks what a file opens although nothing is asked of it: a file that is verified has
/// nothing in it that the statement does not commit to.
pub(super) fn check_openings(
    report: &mut Report,
    transcript: &Transcript,
    work: &Work<'_>,
) -> bool {
    let (Some(layout), Some(_)) = (work.recorded.cells(), transcript.opening()) else {
        return true;
    };
    match Opened::check_all(transcript, layout).map_err(NotOpen::from) {
        Ok(_) => return true,
        Err(NotOpen::Undecided(reason)) => report.undecided(Subject::Encoding, reason),
        Err(NotOpen::Malformed(reason)) => {
            report.fail(Subject::Encoding, Verdict::Malformed, reason);
        }
    }
    false
}

/// What an auditor must not read as "neither a pass nor a failure".
const UNANSWERED: &str = "ask the prover for those of this one; a prover who does not give them has \
                          failed the challenge";

fn coverage(cells: u64, of: u64, tokens: usize) -> Outcome {
    let head = format!("the final norm, the head and the choice of all {tokens} generated tokens");
    if cells == of {
        return Outcome::Passed { detail: format!("all {of} cells (layer, position), and {head}") };
    }
    Outcome::Partial {
        detail: format!(
            "{cells} of {of} cells (layer, position) were drawn, besides {head}. Forged cells are \
             noticed with a probability of {}. A single forged cell would have been noticed with a \
             probability of only {cells} in {of}",
            probability::table(cells, of)
        ),
    }
}
