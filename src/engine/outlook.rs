//! The launches of a run on a GPU, laid out before it begins: which products it will
//! need and how much memory, so that what cannot be is refused before the work.

use super::batch::launches;
use super::device::Footprint;
use super::generate::{GenerateError, Plans};
use crate::model::Config;
use crate::plan::{Batch, Contract, Op, Pass, Plan};

/// Every kind of launch that a run can have: one plan of each, whose batch says what
/// it is launched together with.
///
/// `prompts`: tokens of each prompt; `new_tokens`: the most that are generated after
/// each. Sequences end one by one, so launches of one token a sequence come in every
/// size up to that of all.
///
/// # Errors
/// [`GenerateError::Plan`]: the contract does not know a product of some launch.
pub fn foreseen(
    config: &Config,
    contract: Contract<'_>,
    prompts: &[usize],
    new_tokens: usize,
) -> Result<Vec<Plan>, GenerateError> {
    let mut batches: Vec<(usize, Batch)> = Vec::new();
    for range in launches(prompts) {
        let (first, own) = (range.start, &prompts[range]);
        batches.push((prompts[first], Batch { passes: own.len(), rows: own.iter().sum() }));
    }
    if new_tokens > 1 {
        let most = launches(&vec![1; prompts.len()]).into_iter().map(|range| range.len()).max();
        batches.extend((1..=most.unwrap_or(0)).map(|size| (1, Batch { passes: size, rows: size })));
    }
    let mut plans = Plans::new(config, contract);
    let plan = |(tokens, batch)| Ok(plans.of(Pass { batch, ..Pass::alone(0, 0, tokens) })?);
    batches.into_iter().map(plan).collect()
}

/// Device memory of the run (see [`Footprint`]). `launches` are those [`foreseen`],
/// `positions` what the cache of one of the `sequences` has room for.
pub fn footprint(
    launches: &[Plan],
    (sequences, positions): (usize, usize),
    weights: u64,
    workspace: u64,
) -> Footprint {
    let kept = |plan: &Plan| -> u64 {
        let kept = plan.steps.iter().filter(|step| step.keeps.is_some());
        kept.map(|step| (step.columns * step.dtype.size_bytes()) as u64).sum()
    };
    let a_position = launches.first().map_or(0, kept);
    Footprint {
        weights,
        caches: a_position.saturating_mul(sequences as u64).saturating_mul(positions as u64),
        workspace,
        activations: launches.iter().map(activations).max().unwrap_or(0),
    }
}

/// Most bytes of values that are alive at once in a launch.
fn activations(plan: &Plan) -> u64 {
    let last_uses = super::schedule::last_uses(plan);
    let Batch { passes, rows } = plan.pass.batch;
    let after = plan.steps.iter().position(|step| step.op == Op::LastToken);
    let mut live = std::collections::HashMap::new();
    let mut peak = 0;
    for (index, step) in plan.steps.iter().enumerate() {
        // From the last token on there is one row a pass.
        let rows = if after.is_some_and(|after| index >= after) { passes } else { rows };
        live.insert(step.output, (rows * step.columns * step.dtype.size_bytes()) as u64);
        peak = peak.max(live.values().sum());
        live.retain(|id, _| last_uses.get(id).is_some_and(|&last| last > index));
    }
    peak
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::synth::Checkpoint;

    /// The published sizes of Qwen3-4B.
    fn qwen3_4b() -> Config {
        Checkpoint::new("qwen3-4b", None, 0).unwrap().unwrap().config().clone()
    }

    fn batches_of(prompts: &[usize], new_tokens: usize) -> Vec<(usize, usize)> {
        let config = qwen3_4b();
        let plans = foreseen(&config, Contract::Native, prompts, new_tokens).unwrap();
        plans.iter().map(|plan| (plan.pass.batch.passes, plan.pass.batch.rows)).collect()
    }

    /// Tokens of the prompts, new tokens, passes and rows of the launches, reason.
    type Case<'a> = (&'a [usize], usize, &'a [(usize, usize)], &'a str);

    #[test]
    fn every_size_of_launch_is_foreseen() {
        let cases: [Case<'_>; 4] = [
            (&[250], 1, &[(1, 250)], "one token is the prompt's pass"),
            (&[250], 64, &[(1, 250), (1, 1)], "and those of a token"),
            (&[5, 7, 9], 2, &[(3, 21), (1, 1), (2, 2), (3, 3)], "sequences end one by one"),
            (&[4000, 200], 2, &[(1, 4000), (1, 200), (1, 1), (2, 2)], "two launches of prompts"),
        ];
        for (prompts, new_tokens, batches, reason) in cases {
            assert_eq!(batches_of(prompts, new_tokens), batches, "{reason}");
        }
    }

    #[test]
    fn memory_is_what_the_sizes_say() {
        let config = qwen3_4b();
        let of = |prompts: &[usize], new_tokens: usize| {
            let launches = foreseen(&config, Contract::Native, prompts, new_tokens).unwrap();
            let positions = prompts.iter().max().unwrap() + new_tokens;
            footprint(&launches, (prompts.len(), positions), 8_044_936_192, 1 << 25)
        };
        // Keys and values: 8 heads of 128, 36 layers, two bytes each.
        let a_position = 8 * 128 * 2 * 36 * 2;
        // The widest moment of a row: the residual, gate, up and their product.
        let a_row = (2560 + 3 * 9728) * 2;
        let one = of(&[250], 64);
        assert_eq!((one.caches, one.activations), (314 * a_position, 250 * a_row));
        assert_eq!((one.weights, one.workspace), (8_044_936_192, 1 << 25));
        let three = of(&[250, 100, 50], 64);
        assert_eq!((three.caches, three.activations), (3 * 314 * a_position, 400 * a_row));
        // Of one row, logits are wider than a layer: with them is the normed row.
        let short = of(&[1], 64);
        assert_eq!(short.activations, (151_936 + 2560) * 2);
        // A whole context beside an H200's memory, and beside half of it used.
        let whole = of(&[1000], 39_960);
        assert_eq!(whole.total(), 14_181_776_384);
        assert_eq!(whole.check(149_000_000_000), Ok(()));
        assert!(whole.check(14_000_000_000).is_err());
    }
}
