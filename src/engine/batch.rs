//! Static batching: one pass of every unfinished sequence at a time.
//!
//! Sequences share launches and nothing else: each has its own caches, plans and
//! end, so its outputs are those of a run of its own, bit for bit.

use std::ops::Range;

use super::generate::{Finish, GenerateError, Generation, Plans, StopRule, check};
use super::{Engine, EngineError, Tap, launch};
use crate::model::Config;
use crate::num::Tensor;
use crate::plan::{Batch, Contract, Pass, Plan};

/// Runs prefill and decode of several prompts until the stop rule has ended each
/// of them, or a tap ends all: then `None`. Generation *i* is that of prompt *i*;
/// passes carry *i* as their sequence.
///
/// # Errors
/// Any [`GenerateError`].
pub fn generate_batch<E: Engine>(
    engine: &mut E,
    config: &Config,
    contract: Contract<'_>,
    prompts: &[Vec<u32>],
    rule: &StopRule,
    tap: &mut dyn Tap,
) -> Result<Option<Vec<Generation>>, GenerateError> {
    for (prompt, tokens) in prompts.iter().enumerate() {
        check(config, tokens, rule.max_new_tokens).map_err(|reason| match prompts.len() {
            1 => reason,
            _ => GenerateError::Prompt { prompt, reason: Box::new(reason) },
        })?;
    }
    let mut plans = Plans::new(config, contract);
    let mut all: Vec<Sequence> = prompts.iter().map(|prompt| Sequence::of(prompt)).collect();
    loop {
        let mut unfinished: Vec<(usize, &mut Sequence)> =
            all.iter_mut().enumerate().filter(|(_, sequence)| !sequence.ended).collect();
        if unfinished.is_empty() {
            break;
        }
        let lengths: Vec<usize> = unfinished.iter().map(|(_, own)| own.input.len()).collect();
        for range in launches(&lengths) {
            let batch = Batch { passes: range.len(), rows: lengths[range.clone()].iter().sum() };
            let together = &mut unfinished[range];
            let (mut own, mut tokens) = (Vec::new(), Vec::new());
            for (number, sequence) in together.iter_mut() {
                let plan = plans.of(sequence.next_pass(*number, batch))?;
                sequence.made.plans.push(plan.clone());
                own.push(plan);
                tokens.push(std::mem::take(&mut sequence.input));
            }
            let Some(output) = launch(engine, &own, &tokens, tap)? else { return Ok(None) };
            for ((_, sequence), token) in together.iter_mut().zip(chosen(&output, own.len())?) {
                sequence.take(*token, rule);
            }
        }
    }
    Ok(Some(all.into_iter().map(|sequence| sequence.made).collect()))
}

/// Which of some passes are launched together, given the tokens that each takes: as
/// many, in order, as have [`MAX_ROWS`] tokens. A pass with more runs alone.
pub fn launches(tokens: &[usize]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut rows = 0_usize;
    for (index, &tokens) in tokens.iter().enumerate() {
        rows = rows.saturating_add(tokens);
        match ranges.last_mut() {
            Some(last) if rows <= MAX_ROWS => last.end = index + 1,
            Some(_) | None => {
                rows = tokens;
                ranges.push(index..index + 1);
            }
        }
    }
    ranges
}

/// Most rows of a launch of several passes. Catalogues list products of up to so
/// many rows (`max_m`); those of a longer prompt, which cannot be divided, are
/// refused by the engine if they are not listed.
pub const MAX_ROWS: usize = 4096;

/// A sequence under way.
struct Sequence {
    made: Generation,
    /// What its next pass takes.
    input: Vec<u32>,
    ended: bool,
}

impl Sequence {
    fn of(prompt: &[u32]) -> Self {
        let made = Generation { tokens: Vec::new(), finish: Finish::Length, plans: Vec::new() };
        Self { made, input: prompt.to_vec(), ended: false }
    }

    fn next_pass(&self, sequence: usize, batch: Batch) -> Pass {
        let end = |plan: &Plan| plan.pass.start + plan.pass.tokens;
        Pass {
            sequence,
            index: self.made.plans.len(),
            start: self.made.plans.last().map_or(0, end),
            tokens: self.input.len(),
            batch,
        }
    }

    fn take(&mut self, token: u32, rule: &StopRule) {
        self.made.tokens.push(token);
        match rule.ends(self.made.tokens.len(), token) {
            Some(finish) => (self.made.finish, self.ended) = (finish, true),
            None => self.input = vec![token],
        }
    }
}

/// One token a pass.
fn chosen(output: &Tensor, passes: usize) -> Result<&[u32], EngineError> {
    output.as_u32().filter(|tokens| tokens.len() == passes).ok_or_else(|| EngineError::Operand {
        step: "argmax".into(),
        what: "the last output is not one token id a pass".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_packed_in_order_up_to_the_limit() {
        let most = MAX_ROWS;
        // Tokens, and how many passes each launch has.
        let cases: [(&[usize], &[usize]); 9] = [
            (&[], &[]),
            (&[1], &[1]),
            (&[3, 5, 1], &[3]),
            (&[most], &[1]),
            (&[most + 1], &[1]),
            (&[1, most, 1], &[1, 1, 1]),
            (&[1, most - 1, 1], &[2, 1]),
            (&[1, most + 1, 1, 1], &[1, 1, 2]),
            (&[usize::MAX, usize::MAX, 2], &[1, 1, 1]),
        ];
        for (tokens, sizes) in cases {
            let ranges = launches(tokens);
            assert!(ranges.iter().map(Range::len).eq(sizes.iter().copied()), "{tokens:?}");
            assert!(ranges.into_iter().flatten().eq(0..tokens.len()), "{tokens:?}");
        }
        assert_eq!(launches(&vec![1; most + 1]), [0..most, most..most + 1]);
    }
}
