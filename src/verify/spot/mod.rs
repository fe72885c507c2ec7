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
use crate::transcript::cells::{Cell, Opened, drawn};
use crate::transcript::opening::Draw;

use cells::{Checked, Spots};

/// Checks the cells of a draw, then the final norm, the head and the choice of every
/// generated token; then sampling and coverage.
pub(super) fn check(
    report: &mut Report,
    transcript: &Transcript,
    model: &Content,
    mut work: Work<'_>,
    how: How<'_>,
    draw: &Draw,
) {
    let (cells, opened) = match openings(transcript, &work, draw) {
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
    if let Err(differs) = work.recorded.check_logits_root() {
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

/// The cells of the draw, and their openings if they lead to the trace's root.
fn openings(
    transcript: &Transcript,
    work: &Work<'_>,
    draw: &Draw,
) -> Result<(BTreeSet<Cell>, Opened), NotOpen> {
    let undecided = |reason: &str| NotOpen::Undecided(reason.into());
    let layout = work.recorded.cells().ok_or_else(|| {
        undecided("the trace is not of cells (--trace cells), so single cells cannot be checked")
    })?;
    let opening = transcript
        .opening()
        .ok_or_else(|| undecided("the file has no openings: ask the prover for them"))?;
    let cells = drawn(transcript.digest(), draw, layout.positions, layout.layers);
    let needed = match &opening.draw {
        None => vec![true; layout.count() as usize],
        Some(answered) if answered == draw => layout.needed(&cells),
        Some(_) => return Err(undecided("the openings answer another challenge")),
    };
    let opened = Opened::check(transcript, layout, &needed).map_err(NotOpen::Malformed)?;
    Ok((cells, opened))
}

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
