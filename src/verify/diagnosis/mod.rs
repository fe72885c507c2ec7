//! A diagnosis of the first difference: which undeclared way of computing gives the
//! recorded bits.
//!
//! The differing step is computed again by each declared alternative ([`alternatives`])
//! from the operands at hand. Where the transcript does not show that those agreed, so
//! are all steps since the last output that did. A match names a cause that would
//! explain the difference; the verdict stays what it is.

mod alternatives;
mod cell;
mod quantised;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::compare::Differing;
use super::environment::Known;
use crate::engine::emulator::Emulator;
use crate::engine::{Engine, EngineError, Flow, Group, Part, Progress, Tap, run};
use crate::isa::mma::{MmaProfile, Simd};
use crate::model::{Weights, qwen3};
use crate::num::Tensor;
use crate::plan::{Pass, Plan, Step};
use crate::transcript::statement::TraceMode;

use alternatives::Alternative;
pub(super) use cell::{CellCase, diagnose_cell};

/// What is known of a difference.
pub(super) struct Case<'a> {
    /// Where it is.
    pub(super) differing: &'a Differing,
    /// What the verifier executed.
    pub(super) plans: &'a [Plan],
    /// Token ids of each pass.
    pub(super) tokens: &'a [Vec<u32>],
    /// What the statement declares.
    pub(super) known: &'a Known,
    /// Which outputs the transcript has, so that those before the difference agreed.
    pub(super) trace: TraceMode,
    /// The weights.
    pub(super) weights: &'a Weights,
    /// How products are computed.
    pub(super) simd: Simd,
    /// Tokens of the whole text.
    pub(super) positions: usize,
    /// Becomes true when nobody needs the result any more.
    pub(super) refuted: &'a AtomicBool,
}

/// Tries the alternatives and says in a sentence what came of it; `None` if nobody needs
/// it any more. `emulator` is as the run left it.
///
/// The fewer rows the differing pass has, the more alternatives give the same bits: all
/// that do are named. At most [`MOST_MULTIPLY_ADDS`] are spent; what does not fit is counted in the
/// sentence. `announce` is told before the first attempt how many there are.
pub(super) fn diagnose(
    case: &Case<'_>,
    emulator: &mut Emulator<'_>,
    announce: &mut dyn FnMut(usize),
) -> Option<String> {
    let Differing { pass, index, .. } = *case.differing;
    let plan = case.plans.get(pass.index)?;
    let step = plan.steps.get(index)?;
    let agreed = plan.steps[..index].iter().rposition(|step| shows(case.trace, step));
    let from = agreed.map_or(0, |last| last + 1);

    let mut attempts: Vec<Attempt> = Alternative::of_step(step, &case.known.mma)
        .into_iter()
        .map(|alternative| Attempt { alternative, scope: Scope::Step })
        .collect();
    if from < index {
        let steps = &plan.steps[from..=index];
        let everywhere = Alternative::of_steps(steps, &pass, case.known);
        let scopes: &[Scope] =
            if pass.index == 0 { &[Scope::Pass] } else { &[Scope::Pass, Scope::Passes] };
        for &scope in scopes {
            attempts.extend(
                everywhere.iter().cloned().map(|alternative| Attempt { alternative, scope }),
            );
        }
    }
    if attempts.is_empty() {
        return Some("no alternative is known for this operation".into());
    }
    announce(attempts.len());
    let (mut left, mut tried, mut matches) = (MOST_MULTIPLY_ADDS, 0, Matches::new());
    for attempt in &attempts {
        if case.refuted.load(Ordering::Relaxed) {
            return None;
        }
        let Some(rest) = left.checked_sub(attempt.multiply_adds(case)) else { continue };
        (left, tried) = (rest, tried + 1);
        if attempt.matches(case, from, emulator) {
            let (subject, used) = (attempt.subject(step, &pass, from), &attempt.alternative);
            match matches.last_mut() {
                Some((last, all)) if *last == subject => *all += &format!(" or {used}"),
                Some(_) | None => matches.push((subject, used.to_string())),
            }
        }
    }
    Some(summary(&matches, tried, attempts.len() - tried, (from, index)))
}

/// Whether an output in the trace shows that everything before it agreed: a layer's kept
/// rows say nothing of what is beside them.
fn shows(trace: TraceMode, step: &Step) -> bool {
    match trace {
        TraceMode::None | TraceMode::Layers | TraceMode::Steps => trace.includes(step),
        TraceMode::Cells => step.layer.is_some() && qwen3::is_layer_output(step),
    }
}

/// What is changed, and the alternatives that give the recorded bits.
type Matches = Vec<(String, String)>;

fn summary(
    matches: &[(String, String)],
    tried: usize,
    skipped: usize,
    (from, index): (usize, usize),
) -> String {
    if !matches.is_empty() {
        let each = matches.iter().map(|(subject, used)| format!("{subject} used {used}"));
        return format!("matches if {}", each.collect::<Vec<_>>().join("; or if "));
    }
    let mut text = format!("none of {tried} alternatives gives the recorded bits");
    if skipped > 0 {
        text += &format!("; {skipped} more would take too long and were not tried");
    }
    if from < index {
        text += &format!(
            "; the transcript has no output of steps {from} to {}, so the difference may have \
             begun at any of them",
            index - 1
        );
    }
    text
}

/// What is computed by an alternative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    /// The differing step, from the operands as they were computed.
    Step,
    /// All steps of the differing pass since the last output that agreed.
    Pass,
    /// The same of every pass up to the differing one.
    Passes,
}

/// One alternative, somewhere.
#[derive(Debug)]
struct Attempt<'a> {
    alternative: Alternative<'a>,
    scope: Scope,
}

impl Attempt<'_> {
    fn passes<'p>(&self, case: &Case<'p>) -> (&'p [Plan], &'p [Vec<u32>]) {
        let last = case.differing.pass.index;
        let first = match self.scope {
            Scope::Step | Scope::Pass => last,
            Scope::Passes => 0,
        };
        (&case.plans[first..=last], &case.tokens[first..=last])
    }

    fn multiply_adds(&self, case: &Case<'_>) -> u64 {
        let index = case.differing.index;
        let first = match self.scope {
            Scope::Step => index,
            Scope::Pass | Scope::Passes => 0,
        };
        let of = |plan: &Plan| -> u64 {
            plan.steps[first..=index].iter().map(|step| step.multiply_adds(&plan.pass)).sum()
        };
        self.passes(case).0.iter().map(of).sum()
    }

    /// Whether the recorded output is what the alternative gives.
    fn matches(&self, case: &Case<'_>, from: usize, emulator: &mut Emulator<'_>) -> bool {
        let Differing { pass, index, expected, operands } = case.differing;
        let (plans, tokens) = self.passes(case);
        let Some(step) = plans.last().and_then(|plan| plan.steps.get(*index)) else { return false };
        let (declared, alternative) = (&case.known.mma, &self.alternative);
        let output = match self.scope {
            Scope::Step => {
                let operands: Vec<&Tensor> = operands.iter().collect();
                let group = Group { parts: vec![Part { pass: *pass, step }] };
                let (steps, every_weight) = (*index..*index + 1, true);
                Altered { emulator, declared, alternative, steps, every_weight }
                    .execute(&group, &operands)
                    .ok()
            }
            // Caches hold the rows of earlier passes; its own are written again.
            Scope::Pass => {
                let (steps, every_weight) = (from..*index + 1, false);
                let engine = Altered { emulator, declared, alternative, steps, every_weight };
                execute(engine, plans, tokens, *index, case.refuted)
            }
            Scope::Passes => {
                let mut fresh = Emulator::new(declared, case.simd, case.weights, case.positions);
                let emulator = &mut fresh;
                let (steps, every_weight) = (from..*index + 1, false);
                let engine = Altered { emulator, declared, alternative, steps, every_weight };
                execute(engine, plans, tokens, *index, case.refuted)
            }
        };
        output.is_some_and(|output| expected.is(&output))
    }

    /// What the alternative changes: the sentence up to *used*.
    fn subject(&self, step: &Step, pass: &Pass, from: usize) -> String {
        let subject = self.alternative.subject();
        let since = if from > 0 { format!(" from step {from} on") } else { String::new() };
        match self.scope {
            Scope::Step => step.name.clone(),
            Scope::Pass => format!("{subject} of pass {}{since}", pass.index),
            Scope::Passes => format!("{subject} of passes 0 to {}{since}", pass.index),
        }
    }
}

/// Executes the steps of some passes up to `index`; returns the last pass's output of it.
fn execute(
    mut engine: Altered<'_, '_>,
    plans: &[Plan],
    tokens: &[Vec<u32>],
    index: usize,
    refuted: &AtomicBool,
) -> Option<Tensor> {
    let cut = |plan: &Plan| Plan { steps: plan.steps[..=index].into(), ..plan.clone() };
    let plans: Vec<Plan> = plans.iter().map(cut).collect();
    let outputs = run(&mut engine, &plans, tokens, &mut Until(refuted)).ok()??;
    let (all, own) = (outputs.shape().first()?, plans.last()?.steps.last()?.rows);
    outputs.rows(all.checked_sub(own)?..*all)
}

/// The emulator, but some steps are computed by an alternative.
struct Altered<'e, 'w> {
    emulator: &'e mut Emulator<'w>,
    declared: &'e MmaProfile,
    alternative: &'e Alternative<'e>,
    steps: Range<usize>,
    /// Whether also the weights of products outside layers are altered.
    every_weight: bool,
}

impl Engine for Altered<'_, '_> {
    type Buffer = Tensor;

    fn name(&self) -> &'static str {
        self.emulator.name()
    }

    fn upload(&mut self, tensor: &Tensor) -> Result<Tensor, EngineError> {
        self.emulator.upload(tensor)
    }

    fn execute(&mut self, group: &Group<'_>, inputs: &[&Tensor]) -> Result<Tensor, EngineError> {
        // A value's number is that of the step that defines it.
        if !self.steps.contains(&(group.step().output.0 as usize)) {
            return self.emulator.execute(group, inputs);
        }
        let steps: Vec<Step> = group
            .parts
            .iter()
            .map(|part| self.alternative.apply(part.step, Some(&part.pass)))
            .collect();
        let parts = group.parts.iter().zip(&steps);
        let parts = parts.map(|(part, step)| Part { pass: part.pass, step }).collect();
        self.emulator.set_instruction(self.alternative.instruction().unwrap_or(self.declared));
        self.emulator.set_reform(self.alternative.reform(self.every_weight));
        let output = self.emulator.execute(&Group { parts }, inputs);
        self.emulator.set_instruction(self.declared);
        self.emulator.set_reform(None);
        output
    }

    fn read_back<'b>(&mut self, buffer: &'b Tensor) -> Result<Cow<'b, Tensor>, EngineError> {
        self.emulator.read_back(buffer)
    }
}

/// Looks at nothing and stops a run that nobody needs any more.
struct Until<'a>(&'a AtomicBool);

impl Tap for Until<'_> {
    fn wants(&self, _: &Pass, _: usize, _: &Step) -> bool {
        false
    }

    fn observe(&mut self, _: &Pass, _: usize, _: &Step, _: &Tensor) -> Flow {
        Flow::Continue
    }

    fn progress(&mut self, _: &Progress<'_>) -> Flow {
        if self.0.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Continue }
    }
}

/// Most multiply-adds that all attempts together may take: 2^40, those of some 270
/// tokens of Qwen3-4B.
const MOST_MULTIPLY_ADDS: u64 = 1 << 40;
