//! Greedy generation: prefill, decode, stop rule; used by both sides.
//!
//! A producer does not know the tokens and runs pass after pass
//! ([`generate`], or [`generate_batch`] for several prompts). A verifier knows them
//! all, so it lays out every pass first ([`layout`]) and runs them together.

use std::collections::HashMap;
use std::sync::Arc;

use super::batch::generate_batch;
use super::{Engine, EngineError, Tap};
use crate::model::{Config, qwen3};
use crate::plan::{Batch, Contract, Pass, Plan, PlanError, Step};

/// Why a generation could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The prompt has no token.
    #[error("the prompt has no token")]
    EmptyPrompt,
    /// Nothing is to be generated.
    #[error("at least one token must be generated")]
    NothingToGenerate,
    /// A token id is not in the vocabulary.
    #[error("token {index} of the sequence is {token}, but the vocabulary has {vocab} entries")]
    TokenRange {
        /// Index in the sequence, the prompt first.
        index: usize,
        /// The id.
        token: u32,
        /// Rows of the embedding.
        vocab: usize,
    },
    /// The sequence does not fit the model's context.
    #[error("{}", not_in_context(*.prompt, *.new_tokens, *.limit))]
    Context {
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens to generate.
        new_tokens: usize,
        /// The model's context.
        limit: usize,
    },
    /// A pass cannot have been launched as a batch says.
    #[error(
        "pass {index} takes {tokens} tokens and cannot be one of {} passes that take {} tokens",
        batch.passes, batch.rows
    )]
    Batch {
        /// Number of the pass.
        index: usize,
        /// Tokens that it takes.
        tokens: usize,
        /// What it is said to be launched together with.
        batch: Batch,
    },
    /// One prompt of several was refused.
    #[error("prompt {prompt} of the batch: {reason}")]
    Prompt {
        /// Index of the prompt.
        prompt: usize,
        /// Why.
        reason: Box<GenerateError>,
    },
    /// The plan could not be built.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A step could not be executed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// When to stop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StopRule {
    /// Most tokens to generate.
    pub max_new_tokens: usize,
    /// Ids that end the text; the stop token itself is part of the output.
    pub stop_ids: Vec<u32>,
}

/// Why a generation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finish {
    /// The last token is a stop id.
    Stop,
    /// The limit was reached.
    Length,
}

impl StopRule {
    /// Whether the generation ends after `generated` tokens of which `last` is
    /// the latest.
    pub fn ends(&self, generated: usize, last: u32) -> Option<Finish> {
        if self.stop_ids.contains(&last) {
            Some(Finish::Stop)
        } else if generated >= self.max_new_tokens {
            Some(Finish::Length)
        } else {
            None
        }
    }
}

/// What a generation made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generation {
    /// The chosen tokens, a stop token included.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub finish: Finish,
    /// The plan of each pass.
    pub plans: Vec<Plan>,
}

/// Runs prefill and decode of one prompt until the stop rule ends it, or a tap does:
/// then `None`. Several prompts: [`generate_batch`].
///
/// # Errors
/// Any [`GenerateError`].
pub fn generate<E: Engine>(
    engine: &mut E,
    config: &Config,
    contract: Contract<'_>,
    prompt: &[u32],
    rule: &StopRule,
    tap: &mut dyn Tap,
) -> Result<Option<Generation>, GenerateError> {
    let made = generate_batch(engine, config, contract, &[prompt.to_vec()], rule, tap)?;
    Ok(made.and_then(|mut made| made.pop()))
}

/// Lays out the passes of a finished generation that ran alone: the plan of each
/// pass, and the token ids it takes.
///
/// # Errors
/// As [`layout_in_batches`].
pub fn layout(
    config: &Config,
    contract: Contract<'_>,
    prompt: &[u32],
    generated: &[u32],
) -> Result<(Vec<Plan>, Vec<Vec<u32>>), GenerateError> {
    layout_in_batches(config, contract, prompt, generated, &[])
}

/// As [`layout`], of a generation that shared launches: `batches` says of each pass
/// what it was launched together with. A pass of which it says nothing ran alone.
///
/// # Errors
/// Any [`GenerateError`] but [`GenerateError::Engine`] and [`GenerateError::Prompt`].
pub fn layout_in_batches(
    config: &Config,
    contract: Contract<'_>,
    prompt: &[u32],
    generated: &[u32],
    batches: &[Option<Batch>],
) -> Result<(Vec<Plan>, Vec<Vec<u32>>), GenerateError> {
    check(config, prompt, generated.len())?;
    check_range(config, generated, prompt.len())?;
    let mut made = Plans::new(config, contract);
    let mut plans: Vec<Plan> = Vec::with_capacity(generated.len());
    let mut tokens = Vec::with_capacity(generated.len());
    for index in 0..generated.len() {
        // Pass 0 takes the prompt; pass i takes the token that pass i−1 chose.
        let (start, input) = match index {
            0 => (0, prompt.to_vec()),
            _ => (prompt.len() + index - 1, vec![generated[index - 1]]),
        };
        let mut pass = Pass::alone(index, start, input.len());
        if let Some(&Some(batch)) = batches.get(index) {
            pass.batch = batch;
            if !pass.fits_its_batch() {
                return Err(GenerateError::Batch { index, tokens: pass.tokens, batch });
            }
        }
        plans.push(made.of(pass)?);
        tokens.push(input);
    }
    Ok((plans, tokens))
}

/// Plans that share their steps where they are the same: those of a model with 36
/// layers take 200 KB, and there is a pass a token.
pub(super) struct Plans<'a> {
    config: &'a Config,
    contract: Contract<'a>,
    /// By tokens of the pass, and its batch where recipes depend on that.
    made: HashMap<(usize, Batch), Plan>,
    /// Steps that differ: those of many batches are the same, and a statement may
    /// name another batch for every pass.
    distinct: Vec<Arc<[Step]>>,
}

impl<'a> Plans<'a> {
    pub(super) fn new(config: &'a Config, contract: Contract<'a>) -> Self {
        Self { config, contract, made: HashMap::new(), distinct: Vec::new() }
    }

    /// The plan of a pass.
    pub(super) fn of(&mut self, pass: Pass) -> Result<Plan, PlanError> {
        let batch = match self.contract {
            Contract::Native => Batch::alone(pass.tokens),
            Contract::NativeStock(_) => pass.batch,
        };
        let key = (pass.tokens, batch);
        if let Some(plan) = self.made.get(&key).and_then(|plan| plan.for_pass(pass)) {
            return Ok(plan);
        }
        let mut plan = qwen3::forward(self.config, self.contract, pass)?;
        match self.distinct.iter().find(|steps| **steps == plan.steps) {
            Some(same) => plan.steps = Arc::clone(same),
            None => self.distinct.push(Arc::clone(&plan.steps)),
        }
        self.made.insert(key, plan.clone());
        Ok(plan)
    }
}

/// Whether a generation can begin: a prompt that has tokens, all of the vocabulary,
/// and room for it and `new_tokens` more in the model's context.
///
/// # Errors
/// Any [`GenerateError`] but [`GenerateError::Plan`] and [`GenerateError::Engine`].
pub fn check(config: &Config, prompt: &[u32], new_tokens: usize) -> Result<(), GenerateError> {
    if prompt.is_empty() {
        return Err(GenerateError::EmptyPrompt);
    }
    if new_tokens == 0 {
        return Err(GenerateError::NothingToGenerate);
    }
    let limit = config.max_position_embeddings;
    if prompt.len().saturating_add(new_tokens) > limit {
        return Err(GenerateError::Context { prompt: prompt.len(), new_tokens, limit });
    }
    check_range(config, prompt, 0)
}

fn not_in_context(prompt: usize, new_tokens: usize, limit: usize) -> String {
    if prompt > limit {
        return format!("the prompt's {prompt} tokens do not fit the model's context of {limit}");
    }
    let tokens = prompt.saturating_add(new_tokens);
    format!(
        "{tokens} tokens ({prompt} of the prompt, {new_tokens} to generate) do not fit the \
         model's context of {limit}"
    )
}

fn check_range(config: &Config, tokens: &[u32], first: usize) -> Result<(), GenerateError> {
    let vocab = config.vocab_size;
    match tokens.iter().position(|&token| token as usize >= vocab) {
        Some(at) => Err(GenerateError::TokenRange { index: first + at, token: tokens[at], vocab }),
        None => Ok(()),
    }
}
