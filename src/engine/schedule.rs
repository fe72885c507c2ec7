//! The one loop: steps of many passes, layer by layer.
//!
//! A plan says *what*, this file says *when*. All passes of a generation advance
//! together: step 0 of every pass, then step 1 of every pass, and so on. That is
//! legal because rows are independent and caches only look back: the key and
//! value rows that a pass reads were kept by an earlier step of the same layer.

use std::collections::HashMap;

use super::{Engine, EngineError, Flow, Group, Part, Tap};
use crate::num::{Data, Tensor};
use crate::plan::{Op, Operand, Pass, Plan, Step, ValueId};

/// Executes plans that share their structure, in order of their passes.
///
/// Returns each pass's last output (its chosen token) or `None` if the tap
/// stopped the run. `tokens[i]` are the token ids of `plans[i]`.
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
    let Some(first) = plans.first() else { return Ok(None) };
    let ids: Vec<u32> = tokens.iter().flatten().copied().collect();
    let count = ids.len();
    let ids = Tensor::new(&[count, 1], Data::U32(ids)).ok_or_else(|| operand(first, "tokens"))?;
    let ids = engine.upload(&ids)?;

    let last_uses = last_uses(first);
    let total: u64 = plans
        .iter()
        .map(|plan| plan.steps.iter().map(|step| cost(&plan.pass, step)).sum::<u64>())
        .sum();
    let mut done = 0;
    let mut values: HashMap<ValueId, E::Buffer> = HashMap::new();
    let mut last = None;
    for index in 0..first.steps.len() {
        let group = group(plans, index)?;
        let step = group.step();
        let mut inputs = Vec::new();
        for operand in &step.inputs {
            match operand {
                Operand::Tokens => inputs.push(&ids),
                Operand::Value(id) => {
                    inputs.push(values.get(id).ok_or_else(|| EngineError::Operand {
                        step: step.name.clone(),
                        what: format!("v{} is not defined", id.0),
                    })?)
                }
                Operand::Weight(_) | Operand::Cache(_) => {}
            }
        }
        let output = engine.execute(&group, &inputs)?;
        if show(engine, tap, &group, index, &output)? == Flow::Stop {
            return Ok(None);
        }
        done += group.parts.iter().map(|part| cost(&part.pass, part.step)).sum::<u64>();
        tap.progress(done, total);
        if index + 1 == first.steps.len() {
            last = Some(engine.read_back(&output)?);
        }
        values.insert(step.output, output);
        values.retain(|id, _| last_uses.get(id).is_some_and(|&last| last > index));
    }
    Ok(last)
}

fn show<E: Engine>(
    engine: &mut E,
    tap: &mut dyn Tap,
    group: &Group<'_>,
    index: usize,
    output: &E::Buffer,
) -> Result<Flow, EngineError> {
    if !group.parts.iter().any(|part| tap.wants(&part.pass, index, part.step)) {
        return Ok(Flow::Continue);
    }
    let stacked = engine.read_back(output)?;
    let mut row = 0;
    for part in &group.parts {
        let rows = row..row + part.step.rows;
        row = rows.end;
        if tap.wants(&part.pass, index, part.step) {
            let own = stacked.rows(rows).ok_or_else(|| EngineError::Operand {
                step: part.step.name.clone(),
                what: "the stacked output has too few rows".into(),
            })?;
            if tap.observe(&part.pass, index, part.step, &own) == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
    }
    Ok(Flow::Continue)
}

fn group(plans: &[Plan], index: usize) -> Result<Group<'_>, EngineError> {
    let mut parts: Vec<Part<'_>> = Vec::with_capacity(plans.len());
    for plan in plans {
        let step = plan.steps.get(index).ok_or_else(|| operand(plan, "too few steps"))?;
        if let Some(head) = parts.first() {
            let same = head.step.op == step.op
                && head.step.recipe == step.recipe
                && head.step.inputs == step.inputs
                && head.step.columns == step.columns;
            if !same {
                return Err(operand(plan, "plans executed together must share their structure"));
            }
        }
        parts.push(Part { pass: plan.pass, step });
    }
    Ok(Group { parts })
}

/// Index of the last step that reads each value.
fn last_uses(plan: &Plan) -> HashMap<ValueId, usize> {
    let mut uses = HashMap::new();
    for (index, step) in plan.steps.iter().enumerate() {
        for operand in &step.inputs {
            if let Operand::Value(id) = operand {
                uses.insert(*id, index);
            }
        }
    }
    uses
}

/// Work of a step for progress reports, in multiply-adds.
fn cost(pass: &Pass, step: &Step) -> u64 {
    let elements = (step.rows * step.columns) as u64;
    match step.op {
        Op::Linear { k } => elements * k as u64,
        // Two products of this many keys at most; half of them are in the future.
        Op::Attention { .. } => elements * (pass.start + pass.tokens) as u64,
        Op::Embedding
        | Op::RmsNorm { .. }
        | Op::Rope { .. }
        | Op::Add
        | Op::SiluMul
        | Op::LastToken
        | Op::Argmax => elements,
    }
}

fn operand(plan: &Plan, what: &str) -> EngineError {
    EngineError::Operand { step: format!("pass {}", plan.pass.index), what: what.into() }
}
