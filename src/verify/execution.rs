//! Re-execution: every pass on the emulator, every recorded output compared.

use std::sync::atomic::AtomicBool;

use super::compare::CompareTap;
use super::diagnosis::{Case, diagnose};
use super::environment::Known;
use super::recorded::Recorded;
use super::report::{Outcome, Report, Subject, Verdict};
use super::sampling::check_chosen;
use crate::engine::emulator::Emulator;
use crate::engine::{Progress, run};
use crate::isa::mma::Simd;
use crate::model::Content;
use crate::plan::Plan;
use crate::transcript::{LOGITS_SECTION, TRACE_SECTION, Transcript};

/// What is executed, and what its outputs are compared with.
pub(super) struct Work<'a> {
    pub(super) known: Known,
    pub(super) plans: Vec<Plan>,
    pub(super) tokens: Vec<Vec<u32>>,
    pub(super) recorded: Recorded<'a>,
}

/// How it is executed.
pub(super) struct How<'a> {
    pub(super) simd: Simd,
    pub(super) progress: &'a mut dyn FnMut(&Progress<'_>),
    /// Is told how many alternatives are tried on a difference; without it none is.
    pub(super) diagnosing: Option<&'a mut dyn FnMut(usize)>,
    /// Becomes true when nobody needs the result any more.
    pub(super) refuted: &'a AtomicBool,
}

/// Executes the plans together and compares every recorded output; then sampling
/// and coverage.
pub(super) fn execute(
    report: &mut Report,
    transcript: &Transcript,
    model: &Content,
    work: Work<'_>,
    how: How<'_>,
) {
    let statement = transcript.statement();
    let due = work.recorded.due();
    let mut tap = CompareTap {
        recorded: work.recorded,
        finding: None,
        differing: None,
        wants_operands: how.diagnosing.is_some(),
        compared: 0,
        progress: how.progress,
        refuted: how.refuted,
    };
    let positions = statement.tokens_in.len() + statement.tokens_out.len();
    let mut emulator = Emulator::new(&work.known.mma, how.simd, model.weights(), positions);
    let chosen = run(&mut emulator, &work.plans, &work.tokens, &mut tap);
    if let (Some(differing), Some(announce)) = (&tap.differing, how.diagnosing) {
        let case = Case {
            differing,
            plans: &work.plans,
            tokens: &work.tokens,
            known: &work.known,
            trace: statement.trace.mode,
            weights: model.weights(),
            simd: how.simd,
            positions,
            refuted: how.refuted,
        };
        let diagnosis = diagnose(&case, &mut emulator, announce);
        if let Some(finding) = &mut tap.finding {
            finding.diagnosis = diagnosis;
        }
    }
    // Weights are read from the disk during the run: what was compared is only
    // worth something if they are still the files that were digested.
    if let Err(error) = model.weights().check_unchanged() {
        report.undecided(Subject::Execution, error.to_string());
        return;
    }
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(error) => {
            report.undecided(Subject::Execution, error.to_string());
            return;
        }
    };
    if let Some(finding) = tap.finding {
        let detail = finding.to_string();
        let finding = Some(finding);
        let leads_to = Verdict::Mismatch;
        report.push(Subject::Execution, Outcome::Failed { leads_to, detail, finding });
        return;
    }
    if tap.compared != due {
        let detail = format!("{} of {due} recorded outputs were compared", tap.compared);
        report.undecided(Subject::Execution, detail);
        return;
    }
    let chosen = check_chosen(statement, chosen.as_ref());
    if let Err(differs) = tap.recorded.check_withheld() {
        // Which of them differs only the whole transcript tells, but a token is stated.
        let detail = match chosen {
            Ok(()) => differs,
            Err(token) => format!("{differs}; {token}"),
        };
        report.fail(Subject::Execution, Verdict::Mismatch, detail);
        return;
    }
    report.pass(Subject::Execution, equal(&tap.recorded, tap.compared));
    match chosen {
        Ok(()) => report.pass(
            Subject::Sampling,
            format!(
                "{} tokens are the largest logit's, the text ends by {}",
                statement.tokens_out.len(),
                statement.finish.word()
            ),
        ),
        Err(detail) => report.fail(Subject::Sampling, Verdict::Mismatch, detail),
    }
    report.pass(Subject::Coverage, coverage(transcript, &work.plans));
}

fn equal(recorded: &Recorded<'_>, compared: u64) -> String {
    let by_root = match recorded.withheld()[..] {
        [] => String::new(),
        ref kinds => format!(", those of {} by their root", kinds.join(" and ")),
    };
    format!("{compared} recorded outputs equal the re-execution's{by_root}, 0 bits differ")
}

fn coverage(transcript: &Transcript, plans: &[Plan]) -> String {
    let statement = transcript.statement();
    let place = |kind: &str, mode: &str| match transcript.withholds(kind) {
        true => format!("{mode}, withheld"),
        false => mode.to_owned(),
    };
    let steps: usize = plans.iter().map(|plan| plan.steps.len()).sum();
    let values = statement.logits.count * statement.logits.vocab;
    format!(
        "all {} passes, {steps} steps re-executed; {values} logits ({}), {} traced outputs ({})",
        plans.len(),
        place(LOGITS_SECTION, statement.logits.mode.word()),
        statement.trace.count,
        place(TRACE_SECTION, statement.trace.mode.word())
    )
}
