//! How much memory a run on the emulator takes, foreseen from its plans.

use std::collections::HashMap;

use super::{linear, schedule};
use crate::plan::{Op, Plan, ValueId};

/// Most bytes that [`super::run`] holds at once for these plans: live values, kept
/// keys and values, and what a product with a weight needs beside them. Mapped
/// weights are not counted, nor is what a tap keeps.
pub fn peak_bytes(plans: &[Plan], threads: usize) -> u64 {
    let Some(first) = plans.first() else { return 0 };
    let last_uses = schedule::last_uses(first);
    let (tail, chunk) = schedule::split(plans);
    let mut live: HashMap<ValueId, u64> = HashMap::new();
    let (mut kept, mut peak) = (0, 0);
    for (index, step) in first.steps.iter().enumerate() {
        let together = if index < tail { plans } else { &plans[..chunk.min(plans.len())] };
        let steps = || together.iter().filter_map(|plan| plan.steps.get(index));
        let rows: usize = steps().map(|step| step.rows).sum();
        let bytes = (rows * step.columns * step.dtype.size_bytes()) as u64;
        kept += if step.keeps.is_some() { bytes } else { 0 };
        live.insert(step.output, bytes);
        let scratch = match step.op {
            Op::Linear { k } => linear::scratch_bytes(steps(), (step.columns, k), threads),
            // The heads' results, before they are put in their places.
            Op::Attention { .. } => bytes,
            Op::Embedding
            | Op::RmsNorm { .. }
            | Op::Rope { .. }
            | Op::Add
            | Op::SiluMul
            | Op::LastToken
            | Op::Argmax => 0,
        };
        peak = peak.max(kept + live.values().sum::<u64>() + scratch);
        live.retain(|id, _| last_uses.get(id).is_some_and(|&last| last > index));
    }
    peak
}
