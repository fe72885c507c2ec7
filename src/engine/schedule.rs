//! The one loop: steps of many passes, layer by layer.
//!
//! A plan says *what*, this file says *when*. All passes of a generation, or one
//! of each of several sequences, advance together: step 0 of every pass, then step
//! 1 of every pass, and so on. That is legal because rows are independent, caches
//! are a sequence's own and only look back: the key and value rows that a pass
//! reads were kept by an earlier step of the same layer.
//!
//! The steps after the last layer (last token, norm, logits, choice) touch no
//! cache, so nothing ties passes together there, and their rows are wide: 300 KB
//! of logits a pass. They run over chunks of passes, so that memory does not grow
//! with the number of passes. Where they begin is read off the plan ([`tail`]).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::{Engine, EngineError, Flow, Group, Part, Progress, Tap};
use crate::num::{Data, Tensor};
use crate::plan::{Op, Operand, Pass, Plan, Step, ValueId};

/// Executes plans that share their structure, those of a sequence in order of their
/// passes.
///
/// Returns each pass's last output (its chosen token) or `None` if the tap
/// stopped the run. `tokens[i]` are the token ids of `plans[i]`. The tap sees the
/// passes of one step in order, and the steps of one pass in order.
///
/// # Errors
/// Any [`EngineError`] of the engine; [`EngineError::Operand`] if the plans do
/// not share their structure.
pub fn run<E: Engine>(
    engine: &mut E,
    plans: &[Plan],
    tokens: &[Vec<u32>],
    tap: &mut dyn Tap,
) -> Result<Option<Tensor>, EngineError> {
    run_in_chunks(engine, plans, tokens, tap, CHUNK_BYTES)
}

/// As [`run`], with every step executed once for all plans, whatever memory that
/// takes: a product then has the rows that the passes' batch says.
///
/// # Errors
/// As [`run`].
pub fn launch<E: Engine>(
    engine: &mut E,
    plans: &[Plan],
    tokens: &[Vec<u32>],
    tap: &mut dyn Tap,
) -> Result<Option<Tensor>, EngineError> {
    run_in_chunks(engine, plans, tokens, tap, usize::MAX)
}

/// Executes some of the steps of passes: the values that they read from steps before
/// are given, stacked in order of the passes. Caches are as the engine has them.
///
/// Returns the last of these steps' output, or `None` if the tap stopped the run.
///
/// # Errors
/// As [`run`].
pub fn run_part<E: Engine>(
    engine: &mut E,
    plans: &[Plan],
    range: Range<usize>,
    given: &Given,
    tap: &mut dyn Tap,
) -> Result<Option<Tensor>, EngineError> {
    let Some(first) = plans.first() else { return Ok(None) };
    let Some(end) = range.end.checked_sub(1).and_then(|last| first.steps.get(last)) else {
        return Ok(None);
    };
    let ids = Tensor::new(&[given.tokens.len(), 1], Data::U32(given.tokens.clone()));
    let ids = ids.ok_or_else(|| operand(first, "tokens"))?;
    let mut live = Values { ids: engine.upload(&ids)?, values: HashMap::new() };
    if let Some((id, value)) = &given.value {
        live.values.insert(*id, engine.upload(value)?);
    }
    let of = |plan: &Plan| -> u64 {
        let part = plan.steps.get(range.clone()).unwrap_or_default().iter();
        part.map(|step| step.multiply_adds(&plan.pass)).sum()
    };
    let total = plans.iter().map(of).sum();
    // What is returned outlives the part, also where only a cache keeps it.
    let mut last_uses = last_uses(first);
    last_uses.insert(end.output, usize::MAX);
    let mut run = Run { last_uses, done: 0, total, engine, tap };
    match run.steps(plans, range.clone(), &mut live)? {
        Flow::Stop => Ok(None),
        Flow::Continue => run.output(end, &live).map(Some),
    }
}

/// What the steps of a part read from before it.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Token ids, of all passes.
    pub tokens: Vec<u32>,
    /// A value, with a row a row of the steps.
    pub value: Option<(ValueId, Tensor)>,
}

/// As [`run`], with at most so many bytes of one output after the last layer, but
/// always whole passes.
fn run_in_chunks<E: Engine>(
    engine: &mut E,
    plans: &[Plan],
    tokens: &[Vec<u32>],
    tap: &mut dyn Tap,
    chunk_bytes: usize,
) -> Result<Option<Tensor>, EngineError> {
    let Some(first) = plans.first() else { return Ok(None) };
    let Some(end) = first.steps.last() else { return Ok(None) };
    let ids: Vec<u32> = tokens.iter().flatten().copied().collect();
    let ids = Tensor::new(&[ids.len(), 1], Data::U32(ids));
    let ids = ids.ok_or_else(|| operand(first, "tokens"))?;
    let mut all = Values { ids: engine.upload(&ids)?, values: HashMap::new() };

    let count = first.steps.len();
    let (tail, size) = split_for(plans, chunk_bytes);
    let mut run = Run { last_uses: last_uses(first), done: 0, total: total(plans), engine, tap };
    if run.steps(plans, 0..tail, &mut all)? == Flow::Stop {
        return Ok(None);
    }
    let mut chosen = Vec::new();
    if size >= plans.len() {
        if run.steps(plans, tail..count, &mut all)? == Flow::Stop {
            return Ok(None);
        }
        chosen.push(run.output(end, &all)?);
    } else {
        for (index, chunk) in plans.chunks(size).enumerate() {
            let mut own = run.part(&all, &plans[..index * size], chunk)?;
            if run.steps(chunk, tail..count, &mut own)? == Flow::Stop {
                return Ok(None);
            }
            chosen.push(run.output(end, &own)?);
        }
    }
    if run.tell(count - 1, end, plans) == Flow::Stop {
        return Ok(None);
    }
    let stacked = Tensor::stack(&chosen);
    stacked.map(Some).ok_or_else(|| operand(first, "the last outputs do not fit each other"))
}

/// Live values of some passes, stacked in order of the passes.
struct Values<B> {
    ids: B,
    values: HashMap<ValueId, B>,
}

/// A run under way.
struct Run<'a, E> {
    engine: &'a mut E,
    tap: &'a mut dyn Tap,
    last_uses: HashMap<ValueId, usize>,
    done: u64,
    total: u64,
}

impl<E: Engine> Run<'_, E> {
    /// Executes a range of steps of some passes.
    fn steps(
        &mut self,
        plans: &[Plan],
        range: Range<usize>,
        live: &mut Values<E::Buffer>,
    ) -> Result<Flow, EngineError> {
        for index in range {
            let group = group(plans, index)?;
            let step = group.step();
            if self.tell(index, step, plans) == Flow::Stop {
                return Ok(Flow::Stop);
            }
            let mut inputs = Vec::new();
            for operand in &step.inputs {
                match operand {
                    Operand::Tokens => inputs.push(&live.ids),
                    Operand::Value(id) => inputs.push(defined(step, *id, &live.values)?),
                    Operand::Weight(_) | Operand::Cache(_) => {}
                }
            }
            let output = self.engine.execute(&group, &inputs)?;
            if self.show(&group, index, &output, &inputs)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            self.done += group.parts.iter().map(|p| p.step.multiply_adds(&p.pass)).sum::<u64>();
            live.values.insert(step.output, output);
            live.values.retain(|id, _| self.last_uses.get(id).is_some_and(|&last| last > index));
        }
        Ok(Flow::Continue)
    }

    /// Shows each pass's rows of an output to the tap, if it wants them.
    fn show(
        &mut self,
        group: &Group<'_>,
        index: usize,
        output: &E::Buffer,
        inputs: &[&E::Buffer],
    ) -> Result<Flow, EngineError> {
        if !group.parts.iter().any(|part| self.tap.wants(&part.pass, index, part.step)) {
            return Ok(Flow::Continue);
        }
        let stacked = self.engine.read_back(output)?;
        let mut row = 0;
        for (number, part) in group.parts.iter().enumerate() {
            let rows = row..row + part.step.rows;
            row = rows.end;
            if self.tap.wants(&part.pass, index, part.step) {
                let own = rows_of(part.step, &stacked, rows)?;
                if self.tap.observe(&part.pass, index, part.step, &own) == Flow::Stop {
                    if self.tap.wants_operands() {
                        self.hand_over(group, number, inputs)?;
                    }
                    return Ok(Flow::Stop);
                }
            }
        }
        Ok(Flow::Continue)
    }

    /// Hands one part's rows of the operands to the tap.
    fn hand_over(
        &mut self,
        group: &Group<'_>,
        number: usize,
        inputs: &[&E::Buffer],
    ) -> Result<(), EngineError> {
        // Every operand has a row a row of the output, but for the one step that takes
        // the last of all rows.
        let rows = |part: &Part<'_>| match part.step.op {
            Op::LastToken => part.pass.tokens,
            Op::Embedding
            | Op::RmsNorm { .. }
            | Op::Linear { .. }
            | Op::Rope { .. }
            | Op::Attention { .. }
            | Op::Add
            | Op::SiluMul
            | Op::Argmax => part.step.rows,
        };
        let start: usize = group.parts[..number].iter().map(rows).sum();
        let part = &group.parts[number];
        let mut operands = Vec::with_capacity(inputs.len());
        for input in inputs {
            let stacked = self.engine.read_back(input)?;
            operands.push(rows_of(part.step, &stacked, start..start + rows(part))?);
        }
        self.tap.stopped(operands);
        Ok(())
    }

    /// The live values of `chunk`, the passes that follow those in `before`.
    fn part(
        &mut self,
        all: &Values<E::Buffer>,
        before: &[Plan],
        chunk: &[Plan],
    ) -> Result<Values<E::Buffer>, EngineError> {
        let mut cut = |buffer: &E::Buffer, step: &Step, rows: &dyn Fn(&Plan) -> usize| {
            let start: usize = before.iter().map(rows).sum();
            let end = start + chunk.iter().map(rows).sum::<usize>();
            let own = rows_of(step, self.engine.read_back(buffer)?.as_ref(), start..end)?;
            self.engine.upload(&own)
        };
        let steps = &chunk[0].steps;
        let ids = cut(&all.ids, &steps[0], &|plan| plan.pass.tokens)?;
        let mut values = HashMap::new();
        for (index, step) in steps.iter().enumerate() {
            if let Some(buffer) = all.values.get(&step.output) {
                let rows = |plan: &Plan| plan.steps.get(index).map_or(0, |step| step.rows);
                values.insert(step.output, cut(buffer, step, &rows)?);
            }
        }
        Ok(Values { ids, values })
    }

    fn output(&mut self, end: &Step, live: &Values<E::Buffer>) -> Result<Tensor, EngineError> {
        let buffer = defined(end, end.output, &live.values)?;
        self.engine.read_back(buffer).map(std::borrow::Cow::into_owned)
    }

    fn tell(&mut self, index: usize, step: &Step, plans: &[Plan]) -> Flow {
        let layers = plans.first().map_or(0, layers);
        let (done, total) = (self.done, self.total);
        self.tap.progress(&Progress { done, total, index, step, layers })
    }
}

fn defined<'b, B>(
    step: &Step,
    id: ValueId,
    values: &'b HashMap<ValueId, B>,
) -> Result<&'b B, EngineError> {
    values.get(&id).ok_or_else(|| EngineError::Operand {
        step: step.name.clone(),
        what: format!("v{} is not defined", id.0),
    })
}

fn rows_of(step: &Step, stacked: &Tensor, rows: Range<usize>) -> Result<Tensor, EngineError> {
    stacked.rows(rows).ok_or_else(|| EngineError::Operand {
        step: step.name.clone(),
        what: "the stacked output has too few rows".into(),
    })
}

fn group(plans: &[Plan], index: usize) -> Result<Group<'_>, EngineError> {
    let mut parts: Vec<Part<'_>> = Vec::with_capacity(plans.len());
    for plan in plans {
        let step = plan.steps.get(index).ok_or_else(|| operand(plan, "too few steps"))?;
        if let Some(last) = parts.last().map(|part| part.step)
            && !std::ptr::eq(last, step)
        {
            let same = last.op == step.op
                && (last.recipe == step.recipe || has_own_recipes(step.op))
                && last.inputs == step.inputs
                && last.columns == step.columns;
            if !same {
                return Err(operand(plan, "plans executed together must share their structure"));
            }
        }
        parts.push(Part { pass: plan.pass, step });
    }
    Ok(Group { parts })
}

/// Whether parts of one step may differ in their recipes ([`super::linear`]).
fn has_own_recipes(op: Op) -> bool {
    match op {
        Op::Linear { .. } => true,
        Op::Embedding
        | Op::RmsNorm { .. }
        | Op::Rope { .. }
        | Op::Attention { .. }
        | Op::Add
        | Op::SiluMul
        | Op::LastToken
        | Op::Argmax => false,
    }
}

/// Where the steps begin that run over chunks of passes, and how many passes a
/// chunk has.
pub fn split(plans: &[Plan]) -> (usize, usize) {
    split_for(plans, CHUNK_BYTES)
}

fn split_for(plans: &[Plan], chunk_bytes: usize) -> (usize, usize) {
    let tail = plans.first().map_or(0, |plan| tail(&plan.steps));
    (tail, passes_of_a_chunk(plans, tail, chunk_bytes))
}

/// Where the steps begin that run over chunks of passes: after the last that
/// belongs to a layer, or keeps or reads a cache.
fn tail(steps: &[Step]) -> usize {
    let cached = |operand: &Operand| match operand {
        Operand::Cache(_) => true,
        Operand::Tokens | Operand::Value(_) | Operand::Weight(_) => false,
    };
    let tied = |step: &Step| {
        step.layer.is_some() || step.keeps.is_some() || step.inputs.iter().any(cached)
    };
    steps.iter().rposition(tied).map_or(0, |last| last + 1)
}

/// Passes that run together after the last layer, so that no output of theirs is
/// above `chunk_bytes`. Chunks are of equal size: each reads every weight once.
fn passes_of_a_chunk(plans: &[Plan], tail: usize, chunk_bytes: usize) -> usize {
    let widest = plans.iter().flat_map(|plan| plan.steps.iter().skip(tail)).map(Step::len_bytes);
    let most = (chunk_bytes / widest.max().unwrap_or(0).max(1)).max(1);
    plans.len().div_ceil(plans.len().div_ceil(most).max(1))
}

/// Index of the last step that reads each value; the last output outlives them all.
pub(super) fn last_uses(plan: &Plan) -> HashMap<ValueId, usize> {
    let mut uses = HashMap::new();
    for (index, step) in plan.steps.iter().enumerate() {
        for operand in &step.inputs {
            if let Operand::Value(id) = operand {
                uses.insert(*id, index);
            }
        }
    }
    uses.extend(plan.steps.last().map(|step| (step.output, usize::MAX)));
    uses
}

fn layers(plan: &Plan) -> usize {
    plan.steps.iter().rev().find_map(|step| step.layer).map_or(0, |last| last + 1)
}

fn total(plans: &[Plan]) -> u64 {
    let of = |pass: &Pass, steps: &Arc<[Step]>| -> u64 {
        steps.iter().map(|step| step.multiply_adds(pass)).sum()
    };
    plans.iter().map(|plan| of(&plan.pass, &plan.steps)).sum()
}

fn operand(plan: &Plan, what: &str) -> EngineError {
    EngineError::Operand { step: format!("pass {}", plan.pass.index), what: what.into() }
}

/// Bytes of an output after the last layer that are held at once: logits of 441
/// passes of a vocabulary of 151,936 in bf16. So many rows use a weight well.
const CHUNK_BYTES: usize = 128 << 20;

#[cfg(test)]
mod tests;
