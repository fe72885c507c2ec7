//! Drawn cells, layer by layer, then the ends of all passes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::compare::{self, Differing};
use super::super::diagnosis::{CellCase, diagnose_cell};
use super::super::execution::{How, Work};
use super::super::recorded::{Expected, Recorded};
use super::super::report::Finding;
use crate::engine::emulator::Emulator;
use crate::engine::{Flow, Given, Progress, Tap, run_part, split};
use crate::model::Content;
use crate::num::{Bf16, Tensor};
use crate::plan::{CacheSlot, LOGITS, Pass, Plan, Step, ValueId};
use crate::transcript::Transcript;
use crate::transcript::cells::{Cell, Layout, Opened, is_leaf};

/// What is checked, against what.
pub(super) struct Spots<'a> {
    pub(super) transcript: &'a Transcript,
    pub(super) opened: &'a Opened,
    pub(super) cells: &'a BTreeSet<Cell>,
    pub(super) model: &'a Content,
}

/// How it ended.
pub(super) enum Checked {
    /// Nothing differs.
    Equal {
        /// The token of each pass.
        chosen: Tensor,
    },
    /// The first difference.
    Differs(Box<Finding>),
}

impl Spots<'_> {
    /// Computes the cells and the ends of the passes; compares as they appear.
    ///
    /// # Errors
    /// A sentence, if it could not be decided.
    pub(super) fn check(&self, work: &mut Work<'_>, how: How<'_>) -> Result<Checked, String> {
        let layout = work.recorded.cells().ok_or("the trace is not of cells")?.clone();
        let rows = Rows::of(&work.plans);
        let tokens: Vec<u32> = work.tokens.iter().flatten().copied().collect();
        let mut emulator =
            Emulator::new(&work.known.mma, how.simd, self.model.weights(), layout.positions);
        let mut tap = SpotTap {
            spots: self,
            layout: &layout,
            recorded: &mut work.recorded,
            finding: None,
            differing: None,
            lost: None,
            done: 0,
            total: rows.multiply_adds(self.cells),
            progress: how.progress,
            refuted: how.refuted,
        };
        for layer in 0..layout.layers {
            let part = rows.layer(layer).ok_or("the plan has no such layer")?;
            let plans: Vec<Plan> = self.of(layer).map(|position| rows.at(position)).collect();
            if plans.is_empty() {
                continue;
            }
            self.keep(&mut emulator, &layout, &part)?;
            let given = match part.given {
                Some((value, index)) => {
                    let value = (value, self.stack(&layout, index, part.hidden, self.of(layer))?);
                    Given { tokens: Vec::new(), value: Some(value) }
                }
                // The embedding is computed: it has no commitment and needs none.
                None => {
                    let own = self.of(layer).filter_map(|position| tokens.get(position));
                    Given { tokens: own.copied().collect(), value: None }
                }
            };
            let ran = run_part(&mut emulator, &plans, part.range.clone(), &given, &mut tap);
            if ran.map_err(|error| error.to_string())?.is_none() {
                let diagnosis = match (&tap.differing, how.diagnosing) {
                    (Some(differing), Some(announce)) => {
                        let (plan, given) = cell_of(&plans, &given, differing)?;
                        let (steps, mma) = (part.range.clone(), &work.known.mma);
                        let (given, refuted) = (&given, how.refuted);
                        let case = CellCase { differing, plan, steps, given, mma, refuted };
                        diagnose_cell(&case, &mut emulator, announce)
                    }
                    (Some(_), None) | (None, _) => None,
                };
                return tap.end(diagnosis);
            }
            tap.done += rows.cost(&plans, &part.range);
            for (slot, _, _) in part.kept {
                emulator.clear_cache(slot);
            }
        }
        let part = rows.layer(layout.layers).ok_or("the plan has no steps after the layers")?;
        let ends = rows.ends();
        let (_, at_once) = split(&ends);
        let mut chosen = Vec::new();
        for plans in ends.chunks(at_once) {
            let (value, index) = part.given.ok_or("the plan has no last layer")?;
            let positions = plans.iter().map(|plan| plan.pass.start);
            let value = (value, self.stack(&layout, index, part.hidden, positions)?);
            let given = Given { tokens: Vec::new(), value: Some(value) };
            let ran = run_part(&mut emulator, plans, part.range.clone(), &given, &mut tap);
            match ran.map_err(|error| error.to_string())? {
                None => return tap.end(None),
                Some(tokens) => chosen.push(tokens),
            }
            tap.done += rows.cost(plans, &part.range);
        }
        let chosen = Tensor::stack(&chosen).ok_or("the passes chose no tokens")?;
        Ok(Checked::Equal { chosen })
    }

    /// Positions of the cells of a layer, ascending.
    fn of(&self, layer: usize) -> impl Iterator<Item = usize> {
        self.cells.iter().filter(move |cell| cell.layer == layer).map(|cell| cell.position)
    }

    /// Puts a layer's committed keys and values into the engine's caches, up to the last
    /// position that is drawn.
    fn keep(
        &self,
        emulator: &mut Emulator<'_>,
        layout: &Layout,
        part: &Part,
    ) -> Result<(), String> {
        let Some(last) = self.of(part.layer).max() else { return Ok(()) };
        for &(slot, index, columns) in &part.kept {
            let rows = self.stack(layout, index, columns, 0..=last)?;
            let rows = rows.as_bf16().map(<[Bf16]>::to_vec).unwrap_or_default();
            emulator.set_cache(slot, rows);
        }
        Ok(())
    }

    /// Committed rows of a step's output, below each other.
    fn stack(
        &self,
        layout: &Layout,
        step_index: usize,
        columns: usize,
        positions: impl Iterator<Item = usize>,
    ) -> Result<Tensor, String> {
        let (mut elements, mut rows) = (Vec::new(), 0);
        for position in positions {
            let number = layout.index(position, step_index).ok_or("there is no such leaf")?;
            elements.extend(Bf16::from_le_bytes(&self.opened.content(self.transcript, number)?));
            rows += 1;
        }
        if elements.len() != rows * columns {
            return Err(format!("{rows} rows of {} elements, {columns} each due", elements.len()));
        }
        Ok(Tensor::matrix(rows, columns, elements))
    }
}

/// The plan of the cell that differs, and what was handed to it.
fn cell_of<'p>(
    plans: &'p [Plan],
    given: &Given,
    differing: &Differing,
) -> Result<(&'p Plan, Given), String> {
    let at = plans.iter().position(|plan| plan.pass.start == differing.pass.start);
    let at = at.ok_or("the cell that differs is none of those drawn")?;
    let value = given.value.as_ref().and_then(|(id, rows)| Some((*id, rows.rows(at..at + 1)?)));
    let tokens = given.tokens.get(at).copied().into_iter().collect();
    Ok((&plans[at], Given { tokens, value }))
}

/// Plans of single tokens.
struct Rows<'a> {
    /// By position: the pass, and the steps with one row.
    tokens: Vec<(Pass, Arc<[Step]>)>,
    plans: &'a [Plan],
}

/// The steps of one layer, or those after the last.
struct Part {
    layer: usize,
    range: std::ops::Range<usize>,
    /// The value that comes from the layer before, and the step that defines it; none
    /// for the first, which starts with the embedding.
    given: Option<(ValueId, usize)>,
    hidden: usize,
    /// Caches, the steps that fill them, columns.
    kept: Vec<(CacheSlot, usize, usize)>,
}

impl<'a> Rows<'a> {
    fn of(plans: &'a [Plan]) -> Self {
        let mut made: HashMap<*const Step, Arc<[Step]>> = HashMap::new();
        let mut tokens = Vec::new();
        for plan in plans {
            let steps = made.entry(plan.steps.as_ptr()).or_insert_with(|| plan.steps_of_a_token());
            for start in plan.pass.start..plan.pass.start + plan.pass.tokens {
                tokens.push((Pass { start, tokens: 1, ..plan.pass }, Arc::clone(steps)));
            }
        }
        Self { tokens, plans }
    }

    /// The plan of the token at a position.
    fn at(&self, position: usize) -> Plan {
        let (pass, steps) = &self.tokens[position];
        Plan { stack: self.plans[0].stack, pass: *pass, steps: Arc::clone(steps) }
    }

    /// The plans of the last token of each pass.
    fn ends(&self) -> Vec<Plan> {
        let last = |plan: &Plan| self.at(plan.pass.start + plan.pass.tokens - 1);
        self.plans.iter().map(last).collect()
    }

    /// The steps of a layer; with the number of layers, those after the last.
    fn layer(&self, layer: usize) -> Option<Part> {
        let steps = &self.plans.first()?.steps;
        let (first, last) = (
            steps.iter().position(|step| step.layer == Some(layer)),
            steps.iter().rposition(|step| step.layer == Some(layer)),
        );
        let (start, end) = match (first, last) {
            // The first layer's part begins with the embedding.
            (Some(_), Some(last)) if layer == 0 => (0, last + 1),
            (Some(first), Some(last)) => (first, last + 1),
            _ => (steps.iter().rposition(|step| step.layer.is_some())? + 1, steps.len()),
        };
        let before = start.checked_sub(1).and_then(|index| Some((index, steps.get(index)?)));
        let kept = steps[start..end]
            .iter()
            .enumerate()
            .filter_map(|(index, step)| step.keeps.map(|slot| (slot, start + index, step.columns)));
        Some(Part {
            layer,
            range: start..end,
            given: before.map(|(index, step)| (step.output, index)),
            hidden: before.map_or(0, |(_, step)| step.columns),
            kept: kept.collect(),
        })
    }

    fn cost(&self, plans: &[Plan], range: &std::ops::Range<usize>) -> u64 {
        let of = |plan: &Plan| -> u64 {
            plan.steps[range.clone()].iter().map(|step| step.multiply_adds(&plan.pass)).sum()
        };
        plans.iter().map(of).sum()
    }

    /// Multiply-adds of these cells and of the ends of all passes.
    fn multiply_adds(&self, cells: &BTreeSet<Cell>) -> u64 {
        let mut total = 0;
        for cell in cells {
            if let Some(part) = self.layer(cell.layer) {
                total += self.cost(&[self.at(cell.position)], &part.range);
            }
        }
        let ends = self.layer(usize::MAX).map(|part| self.cost(&self.ends(), &part.range));
        total + ends.unwrap_or(0)
    }
}

/// Compares a cell's outputs with the opened rows, and rows of logits.
struct SpotTap<'a, 'r, P> {
    spots: &'a Spots<'a>,
    layout: &'a Layout,
    recorded: &'a mut Recorded<'r>,
    finding: Option<Finding>,
    differing: Option<Differing>,
    /// Why a row could not be compared.
    lost: Option<String>,
    /// Multiply-adds of the parts before.
    done: u64,
    total: u64,
    progress: P,
    refuted: &'a AtomicBool,
}

impl<P> SpotTap<'_, '_, P> {
    /// Why it was stopped.
    fn end(self, diagnosis: Option<String>) -> Result<Checked, String> {
        match (self.finding, self.lost) {
            (Some(finding), _) => Ok(Checked::Differs(Box::new(Finding { diagnosis, ..finding }))),
            (None, Some(reason)) => Err(reason),
            (None, None) => Err("the execution was stopped".into()),
        }
    }
}

impl<P: FnMut(&Progress<'_>)> Tap for SpotTap<'_, '_, P> {
    fn wants(&self, _: &Pass, _: usize, step: &Step) -> bool {
        step.name == LOGITS || is_leaf(step)
    }

    fn observe(&mut self, pass: &Pass, index: usize, step: &Step, output: &Tensor) -> Flow {
        let expected = if step.name == LOGITS {
            self.recorded.logits(pass, output)
        } else {
            let number = self.layout.index(pass.start, index);
            let number = number.ok_or_else(|| format!("{} has no leaf", step.name));
            match number.and_then(|leaf| self.spots.opened.content(self.spots.transcript, leaf)) {
                Ok(bytes) if output.is_le_bytes(&bytes) => None,
                Ok(bytes) => Some(Expected { row: None, digest: None, bytes: Some(bytes) }),
                Err(reason) => {
                    self.lost = Some(reason);
                    return Flow::Stop;
                }
            }
        };
        match expected {
            None => Flow::Continue,
            Some(expected) => {
                self.finding = Some(compare::finding(pass, index, step, &expected, output));
                let operands = Vec::new();
                self.differing = Some(Differing { pass: *pass, index, expected, operands });
                Flow::Stop
            }
        }
    }

    fn progress(&mut self, now: &Progress<'_>) -> Flow {
        (self.progress)(&Progress { done: self.done + now.done, total: self.total, ..*now });
        if self.refuted.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Continue }
    }
}
