//! Re-execution: every pass on the emulator, every recorded output compared.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use super::compare::{CompareTap, Expected};
use super::diagnosis::{Case, diagnose};
use super::environment::{Known, Refusal};
use super::report::{Outcome, Report, Subject, Verdict};
use super::sampling::check_chosen;
use crate::engine::emulator::Emulator;
use crate::engine::{Progress, run};
use crate::isa::mma::Simd;
use crate::model::Content;
use crate::num::Digest;
use crate::plan::Plan;
use crate::transcript::leaf::LeafHeader;
use crate::transcript::statement::Statement;
use crate::transcript::{TRACE_SECTION, Transcript, merkle};

/// What is executed, and what its outputs are compared with.
pub(super) struct Work {
    pub(super) known: Known,
    pub(super) plans: Vec<Plan>,
    pub(super) tokens: Vec<Vec<u32>>,
    pub(super) trace: HashMap<(usize, usize), Digest>,
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
    work: Work,
    how: How<'_>,
) {
    let statement = transcript.statement();
    let logits = (0..statement.logits.count).filter_map(|row| {
        let bytes = transcript.logits_row(row).map(Expected::Bytes);
        bytes.or_else(|| transcript.logits_digest(row).map(Expected::Digest))
    });
    let due = work.plans.len() + work.trace.len();
    let mut tap = CompareTap {
        logits: logits.collect(),
        trace: work.trace,
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
    report.pass(
        Subject::Execution,
        format!("{} recorded outputs equal the re-execution's, 0 bits differ", tap.compared),
    );
    match check_chosen(statement, chosen.as_ref()) {
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
    report.pass(Subject::Coverage, coverage(statement, &work.plans));
}

fn coverage(statement: &Statement, plans: &[Plan]) -> String {
    let steps: usize = plans.iter().map(|plan| plan.steps.len()).sum();
    let values = statement.logits.count * statement.logits.vocab;
    format!(
        "all {} passes, {steps} steps re-executed; {values} logits ({}), {} traced outputs ({})",
        plans.len(),
        statement.logits.mode.word(),
        statement.trace.count,
        statement.trace.mode.word()
    )
}

/// Expected digests of traced outputs, by pass and step, bound to the root.
///
/// Names and shapes are the verifier's own, so a leaf cannot be moved.
pub(super) fn expected_trace(
    transcript: &Transcript,
    plans: &[Plan],
) -> Result<HashMap<(usize, usize), Digest>, Refusal> {
    let statement = transcript.statement();
    let mode = statement.trace.mode;
    let mut expected = HashMap::new();
    let mut leaves = Vec::new();
    for plan in plans {
        for (index, step) in plan.steps.iter().enumerate().filter(|(_, step)| mode.includes(step)) {
            let Some(digest) = transcript.trace_digest(leaves.len() as u64) else {
                return Err(Refusal {
                    leads_to: Verdict::Malformed,
                    detail: format!(
                        "the trace ends before pass {}, {}",
                        plan.pass.index, step.name
                    ),
                });
            };
            let header = LeafHeader {
                kind: TRACE_SECTION,
                pass: plan.pass.index as u64,
                index: index as u64,
                name: &step.name,
                dtype: step.dtype,
                shape: &[step.rows as u64, step.columns as u64],
            };
            leaves.push(header.hash(digest));
            expected.insert((plan.pass.index, index), digest);
        }
    }
    if leaves.len() as u64 != statement.trace.count {
        return Err(Refusal {
            leads_to: Verdict::Malformed,
            detail: format!("the trace has {} leaves, {} due", statement.trace.count, leaves.len()),
        });
    }
    let root = (!leaves.is_empty()).then(|| merkle::root(&leaves));
    if root != statement.trace.root {
        return Err(Refusal {
            leads_to: Verdict::Malformed,
            detail: "the trace section does not match its root".into(),
        });
    }
    Ok(expected)
}
