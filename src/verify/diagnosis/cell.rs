//! The same of a drawn cell: its steps are computed again from the committed rows, each
//! in turn by its alternatives.
//!
//! What was handed to the cell and what its layer kept is committed, so whatever is
//! wrong is in one of the cell's own steps, or in those rows.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::alternatives::Alternative;
use super::{Altered, MOST_MULTIPLY_ADDS, Matches, Until, summary};
use crate::engine::emulator::Emulator;
use crate::engine::{Given, run_part};
use crate::isa::mma::MmaProfile;
use crate::plan::Plan;
use crate::verify::compare::Differing;

/// What is known of a difference in a cell.
pub(in crate::verify) struct CellCase<'a> {
    /// Where it is.
    pub(in crate::verify) differing: &'a Differing,
    /// The plan of the cell's token.
    pub(in crate::verify) plan: &'a Plan,
    /// The cell's steps.
    pub(in crate::verify) steps: Range<usize>,
    /// What was handed to it.
    pub(in crate::verify) given: &'a Given,
    /// The declared instruction.
    pub(in crate::verify) mma: &'a MmaProfile,
    /// Becomes true when nobody needs the result any more.
    pub(in crate::verify) refuted: &'a AtomicBool,
}

/// Tries the alternatives of each step up to the differing one and says in a sentence
/// what came of it; `None` if nobody needs it any more. `emulator` has the rows that the
/// layer kept.
pub(in crate::verify) fn diagnose_cell(
    case: &CellCase<'_>,
    emulator: &mut Emulator<'_>,
    announce: &mut dyn FnMut(usize),
) -> Option<String> {
    let Differing { index, expected, .. } = case.differing;
    let range = case.steps.start..index + 1;
    let steps = case.plan.steps.get(range.clone())?;
    let attempts: Vec<(usize, Alternative<'_>)> = range
        .clone()
        .zip(steps)
        .flat_map(|(at, step)| {
            Alternative::of_step(step, case.mma).into_iter().map(move |other| (at, other))
        })
        .collect();
    announce(attempts.len());
    let cost: u64 = steps.iter().map(|step| step.multiply_adds(&case.plan.pass)).sum();
    let most = MOST_MULTIPLY_ADDS.checked_div(cost).unwrap_or(u64::MAX);
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(attempts.len());
    let mut matches = Matches::new();
    for (at, alternative) in &attempts[..most] {
        if case.refuted.load(Ordering::Relaxed) {
            return None;
        }
        let (declared, steps, every_weight) = (case.mma, *at..at + 1, true);
        let mut engine = Altered { emulator, declared, alternative, steps, every_weight };
        let plans = std::slice::from_ref(case.plan);
        let mut tap = Until(case.refuted);
        let output = run_part(&mut engine, plans, range.clone(), case.given, &mut tap);
        if output.is_ok_and(|output| output.is_some_and(|output| expected.is(&output))) {
            let subject = case.plan.steps[*at].name.clone();
            match matches.last_mut() {
                Some((last, all)) if *last == subject => *all += &format!(" or {alternative}"),
                Some(_) | None => matches.push((subject, alternative.to_string())),
            }
        }
    }
    Some(summary(&matches, most, attempts.len() - most, (*index, *index)))
}
