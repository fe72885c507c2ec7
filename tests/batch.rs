//! Several prompts in one run: what each commits to is what it would alone.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

mod support;

use attest::engine::batch::generate_batch;
use attest::engine::emulator::Emulator;
use attest::engine::generate::{GenerateError, Generation, StopRule, generate, layout_in_batches};
use attest::engine::{Flow, NoTap, Tap, run};
use attest::isa::mma::Simd;
use attest::num::Tensor;
use attest::plan::{Batch, Contract, Pass, Step};
use attest::transcript::capture;
use attest::transcript::record::Recording;
use attest::transcript::statement::{self, LogitsMode, TraceMode};
use attest::transcript::tap::RecordTap;
use attest::verify::report::{Subject, Verdict};

use support::{Made, Making, assert_verified, check, failures, mma, model, trust};

/// Tokens of the prompts: 64 keys are one tile of attention.
const LENGTHS: [usize; 5] = [7, 1, 70, 64, 23];
const NEW_TOKENS: usize = 6;

/// Prompts of these lengths, all different.
fn prompts(lengths: &[usize]) -> Vec<Vec<u32>> {
    let vocab = model().config().vocab_size as u32;
    let token = |prompt: usize, at: usize| (131 * prompt + 29 * at + 5) as u32 % vocab;
    let of = |(prompt, &length): (usize, &usize)| (0..length).map(|at| token(prompt, at)).collect();
    lengths.iter().enumerate().map(of).collect()
}

fn emulator(prompts: &[Vec<u32>]) -> Emulator<'static> {
    let longest = prompts.iter().map(Vec::len).max().unwrap_or(0);
    Emulator::new(&mma(), Simd::detect(), model().weights(), longest + NEW_TOKENS)
}

/// A batch, and what each sequence commits to.
fn together(prompts: &[Vec<u32>], rule: &StopRule) -> (Vec<Generation>, Vec<Recording>) {
    let vocab = model().config().vocab_size;
    let mut tap = RecordTap::new(LogitsMode::Full, TraceMode::Steps, vocab, |_| {});
    let (mut engine, config) = (emulator(prompts), model().config());
    let made = generate_batch(&mut engine, config, Contract::Native, prompts, rule, &mut tap);
    (made.unwrap().unwrap(), tap.finish().unwrap())
}

/// As [`together`], by the function for one prompt.
fn alone(prompt: &[u32], rule: &StopRule) -> (Generation, Recording) {
    let vocab = model().config().vocab_size;
    let mut tap = RecordTap::new(LogitsMode::Full, TraceMode::Steps, vocab, |_| {});
    let (mut engine, config) = (emulator(&[prompt.to_vec()]), model().config());
    let made = generate(&mut engine, config, Contract::Native, prompt, rule, &mut tap);
    (made.unwrap().unwrap(), tap.finish().unwrap().remove(0))
}

/// A rule by which the sequences of all [`LENGTHS`] do not end at one time: a token
/// that some of them generate early is a stop token.
fn rule() -> StopRule {
    let free = StopRule { max_new_tokens: NEW_TOKENS, stop_ids: Vec::new() };
    let tokens: Vec<Vec<u32>> =
        prompts(&LENGTHS).iter().map(|prompt| alone(prompt, &free).0.tokens).collect();
    StopRule { stop_ids: vec![tokens[0][1], tokens[2][3]], ..free }
}

#[test]
fn every_sequence_commits_to_what_it_would_alone() {
    let rule = rule();
    for count in [1, 2, 5] {
        let prompts = prompts(&LENGTHS[..count]);
        let (made, recordings) = together(&prompts, &rule);
        let mut ends: Vec<usize> = made.iter().map(|made| made.tokens.len()).collect();
        for (number, prompt) in prompts.iter().enumerate() {
            let (own, recording) = alone(prompt, &rule);
            let what = format!("prompt {number} of {count}");
            assert_eq!(made[number].tokens, own.tokens, "{what}");
            assert_eq!(made[number].finish, own.finish, "{what}");
            let digests = |made: &Generation| -> Vec<_> {
                made.plans.iter().map(|plan| plan.digest()).collect()
            };
            assert_eq!(digests(&made[number]), digests(&own), "{what}");
            assert!(recordings[number] == recording, "{what}: outputs differ");
        }
        assert_eq!((made.len(), recordings.len()), (count, count));
        ends.sort_unstable();
        ends.dedup();
        assert!(count < 5 || ends.len() >= 3, "the test wants different ends: {ends:?}");
    }
}

#[test]
fn a_pass_says_what_it_was_launched_with() {
    let prompts = prompts(&LENGTHS);
    let (made, _) = together(&prompts, &rule());
    let rounds = made.iter().map(|made| made.plans.len()).max().unwrap();
    for index in 0..rounds {
        let passes = made.iter().filter_map(|made| made.plans.get(index)).map(|plan| plan.pass);
        let passes: Vec<Pass> = passes.collect();
        let rows = passes.iter().map(|pass| pass.tokens).sum();
        let batch = Batch { passes: passes.len(), rows };
        assert!(passes.iter().all(|pass| pass.batch == batch), "round {index}: {passes:?}");
        assert!(passes.iter().all(|pass| pass.index == index && pass.fits_its_batch()));
    }
    for (sequence, made) in made.iter().enumerate() {
        assert!(made.plans.iter().all(|plan| plan.pass.sequence == sequence));
    }
}

/// Sequence and tokens of every pass, by launch.
#[derive(Default)]
struct Launched {
    launches: Vec<Vec<(usize, usize)>>,
    /// Passes of the launch under way that are not seen yet.
    left: usize,
}

impl Tap for Launched {
    fn wants(&self, _: &Pass, index: usize, _: &Step) -> bool {
        index == 0
    }

    fn observe(&mut self, pass: &Pass, _: usize, _: &Step, _: &Tensor) -> Flow {
        if self.left == 0 {
            self.launches.push(Vec::new());
            self.left = pass.batch.passes;
        }
        self.left -= 1;
        self.launches.last_mut().unwrap().push((pass.sequence, pass.tokens));
        Flow::Continue
    }
}

#[test]
fn prompts_share_launches_up_to_the_limit() {
    // 1,000 tokens a prompt: four fit 4,096.
    let prompts = prompts(&[1000, 1000, 1000, 1000, 1000]);
    let rule = StopRule { max_new_tokens: 2, stop_ids: Vec::new() };
    let (mut engine, config) = (emulator(&prompts), model().config());
    let mut seen = Launched::default();
    let made = generate_batch(&mut engine, config, Contract::Native, &prompts, &rule, &mut seen);
    assert_eq!(made.unwrap().unwrap().len(), 5);
    let expected = [
        (0..4).map(|sequence| (sequence, 1000)).collect::<Vec<_>>(),
        vec![(4, 1000)],
        (0..5).map(|sequence| (sequence, 1)).collect(),
    ];
    assert_eq!(seen.launches, expected);
}

#[test]
fn a_prompt_that_cannot_run_is_named() {
    let mut given = prompts(&[3, 2, 4]);
    given[1].clear();
    let rule = StopRule { max_new_tokens: 2, stop_ids: Vec::new() };
    let run = |prompts: &[Vec<u32>]| {
        let (mut engine, config) = (emulator(prompts), model().config());
        generate_batch(&mut engine, config, Contract::Native, prompts, &rule, &mut NoTap)
    };
    let error = run(&given).unwrap_err();
    assert!(matches!(error, GenerateError::Prompt { prompt: 1, .. }), "{error:?}");
    assert_eq!(error.to_string(), "prompt 1 of the batch: the prompt has no token");
    let error = run(&given[1..2]).unwrap_err();
    assert!(matches!(error, GenerateError::EmptyPrompt), "{error:?}");
    assert_eq!(run(&[]).unwrap(), Some(Vec::new()), "no prompt, no generation");
}

/// Three sequences of different lengths, run together.
fn batch_of_three(making: Making<'_>) -> Vec<Made> {
    let making = Making { trace: TraceMode::Steps, ..making };
    making.make_batch(&["Call me", "It is not down in any map; true places never are.", "W"])
}

#[test]
fn transcripts_of_a_batch_verify() {
    let made = batch_of_three(Making::default());
    let singles = ["Call me", "W"];
    for (number, made) in made.iter().enumerate() {
        let passes = &made.statement.passes;
        assert!(passes.iter().all(|pass| pass.batch.is_some_and(|batch| batch.passes == 3)));
        let transcript = made.seal();
        let done = check(transcript.as_bytes(), &trust(), None);
        assert_verified(&done, &format!("sequence {number}"));
    }
    // Nothing but the batch, and the dispatch that follows from it, tells them from
    // transcripts of their own.
    for (made, prompt) in [&made[0], &made[2]].into_iter().zip(singles) {
        let own = Making { prompt, trace: TraceMode::Steps, ..Making::default() }.make();
        let mut statement = made.statement.clone();
        assert_ne!(statement, own.statement);
        statement.passes.iter_mut().for_each(|pass| pass.batch = None);
        statement.dispatch.clone_from(&own.statement.dispatch);
        assert_eq!(statement, own.statement);
        assert!(made.contents == own.contents);
    }
}

#[test]
fn dispatch_rows_are_those_of_the_launches() {
    let made = batch_of_three(Making::default());
    let lengths: Vec<u64> = made.iter().map(|made| made.statement.tokens_in.len() as u64).collect();
    let vocab = model().config().vocab_size as u64;
    for made in &made {
        let rows = |is_head: bool| -> Vec<u64> {
            let rows = made.statement.dispatch.iter().filter(|row| (row.n == vocab) == is_head);
            let mut rows: Vec<u64> = rows.map(|row| row.m).collect();
            rows.sort_unstable();
            rows.dedup();
            rows
        };
        assert_eq!(rows(false), [3, lengths.iter().sum()], "products of the layers");
        assert_eq!(rows(true), [3], "the product of the logits");
    }
}

/// Changes the batch that pass 1 of a sequence states, with the dispatch rows that
/// its plans then have, and verifies what its signer signs.
fn with_batch(batch: Option<statement::Batch>) -> Result<Vec<(Subject, Verdict, String)>, String> {
    let mut made = batch_of_three(Making::default()).remove(0);
    made.statement.passes[1].batch = batch;
    let sealed =
        attest::transcript::Transcript::seal(&made.statement, &made.contents, &support::key());
    let sealed = sealed.map_err(|error| error.to_string())?;
    Ok(failures(&check(sealed.as_bytes(), &trust(), None)))
}

#[test]
fn a_batch_that_cannot_be_is_malformed() {
    let batch = |passes, rows| Some(statement::Batch { passes, rows });
    let cases = [
        (batch(0, 3), "pass 1 is in a batch of 0, at least 2 are due"),
        (batch(1, 1), "pass 1 is in a batch of 1, at least 2 are due"),
        (batch(3, 2), "3 passes and 2 tokens, at least 3 are due"),
        (batch(u64::MAX, 3), "18446744073709551615 passes and 3 tokens"),
        (batch(2, u64::MAX), "a batch of 18446744073709551615 tokens, at most 1048576 are"),
        (batch(2, (1 << 20) + 1), "at most 1048576 are allowed"),
    ];
    for (batch, words) in cases {
        let refused = with_batch(batch).unwrap_err();
        assert!(refused.contains(words), "{batch:?}: {refused}");
    }
}

#[test]
fn a_batch_without_its_dispatch_rows_is_a_mismatch() {
    let batch = |passes, rows| Some(statement::Batch { passes, rows });
    let cases = [
        (batch(2, 5), "no dispatch row for linear m=2"),
        (batch(3, 9), "no dispatch row for linear m=9"),
        (None, "no dispatch row for linear m=1"),
    ];
    for (batch, words) in cases {
        let failed = with_batch(batch).unwrap();
        let [(Subject::Environment, Verdict::Mismatch, detail)] = &failed[..] else {
            panic!("{batch:?}: {failed:?}")
        };
        assert!(detail.contains(words), "{batch:?}: {detail}");
    }
    assert_eq!(with_batch(batch(3, 3)), Ok(Vec::new()), "the true one");
}

#[test]
fn what_a_pass_was_launched_with_is_the_signers_word() {
    // A batch that never was, with the dispatch rows that go with it.
    let mut made = batch_of_three(Making::default()).remove(0);
    for pass in &mut made.statement.passes {
        let others = 1 + pass.token_count;
        pass.batch = Some(statement::Batch { passes: 2, rows: pass.token_count + others });
    }
    let plans = made.layout().0;
    made.statement.dispatch = capture::products(&plans).into_iter().collect();
    let done = check(made.seal().as_bytes(), &trust(), None);
    assert_verified(&done, "under native a batch changes no bit");
    let claim = done.claims.iter().find(|claim| claim.field == "passes.batch").unwrap();
    assert_eq!(claim.value, "what 3 of 3 passes were launched with");
    let done = check(Making::default().make().seal().as_bytes(), &trust(), None);
    assert!(done.claims.iter().all(|claim| claim.field != "passes.batch"), "none is stated");
}

#[test]
fn sequences_verify_layer_by_layer_in_one_execution() {
    let prompts = prompts(&LENGTHS);
    let (made, recordings) = together(&prompts, &rule());
    let (mut plans, mut tokens) = (Vec::new(), Vec::new());
    for (sequence, (made, prompt)) in made.iter().zip(&prompts).enumerate() {
        let batches: Vec<_> = made.plans.iter().map(|plan| Some(plan.pass.batch)).collect();
        let config = model().config();
        let laid =
            layout_in_batches(config, Contract::Native, prompt, &made.tokens, &batches).unwrap();
        for (mut plan, own) in laid.0.into_iter().zip(laid.1) {
            plan.pass.sequence = sequence;
            plans.push(plan);
            tokens.push(own);
        }
    }
    let vocab = model().config().vocab_size;
    let mut tap = RecordTap::new(LogitsMode::Full, TraceMode::Steps, vocab, |_| {});
    run(&mut emulator(&prompts), &plans, &tokens, &mut tap).unwrap().unwrap();
    assert!(tap.finish().unwrap() == recordings);
}
