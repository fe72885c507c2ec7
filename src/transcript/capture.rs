//! From a finished generation to a statement.

use std::collections::BTreeSet;

use super::record::Recording;
use super::statement::{
    Artifact, Batch, DispatchRow, Environment, FORMAT_VERSION, FinishReason, ManifestFile,
    ModelManifest, Pass, Sampling, Statement, Tool,
};
use crate::engine::generate::{Finish, Generation, StopRule};
use crate::model::{Manifest, Model};
use crate::plan::{self, Op, PLAN_VERSION, Plan, Stack};

/// Everything about a run that the generation itself does not tell.
#[derive(Debug)]
pub struct Circumstances<'a> {
    /// The model.
    pub model: &'a Model,
    /// The GPU profile whose arithmetic is claimed.
    pub profile: Artifact,
    /// The catalogue that names recipes.
    pub catalogue: Artifact,
    /// Where it ran.
    pub environment: Environment,
    /// The dispatch rows really used, in any order.
    pub dispatch: Vec<DispatchRow>,
    /// The numeric contract.
    pub stack: Stack,
    /// When to stop.
    pub rule: &'a StopRule,
    /// The prompt as given.
    pub prompt: Vec<u8>,
    /// Its token ids.
    pub tokens_in: Vec<u32>,
    /// Time that the signer claims (seconds since 1970-01-01T00:00:00Z).
    pub claimed_time: u64,
    /// A challenger's nonce.
    pub nonce: Option<Vec<u8>>,
}

/// Writes the statement of a run.
pub fn statement(run: Circumstances<'_>, made: &Generation, recording: &Recording) -> Statement {
    let mut dispatch = run.dispatch;
    dispatch.sort();
    dispatch.dedup();
    let mut stop_ids = run.rule.stop_ids.clone();
    stop_ids.sort_unstable();
    stop_ids.dedup();
    Statement {
        format_version: FORMAT_VERSION,
        tool: Tool { name: "attest".into(), version: env!("CARGO_PKG_VERSION").into() },
        numerics: PLAN_VERSION.into(),
        // Only whoever signs reads the whole folder: no check needs the root.
        model: ModelManifest { oms_root: run.model.oms_root(), ..manifest(run.model) },
        profile: run.profile,
        catalogue: run.catalogue,
        environment: run.environment,
        stack: run.stack.name().into(),
        sampling: Sampling {
            rule: GREEDY.into(),
            max_new_tokens: run.rule.max_new_tokens as u64,
            stop_ids,
            recorded: run.model.generation().recorded.clone(),
        },
        prompt: run.prompt,
        tokens_in: run.tokens_in,
        tokens_out: made.tokens.clone(),
        finish: finish_reason(made.finish),
        dispatch,
        passes: made.plans.iter().map(pass_record).collect(),
        logits: recording.logits.clone(),
        trace: recording.trace.clone(),
        sections: recording.sections.clone(),
        claimed_time: run.claimed_time,
        nonce: run.nonce,
        extensions: Vec::new(),
    }
}

/// The statement's form of a model's manifest, without the root of the folder.
pub fn manifest(model: &Model) -> ModelManifest {
    manifest_of(model.name(), model.manifest())
}

/// As [`manifest`], of a model that has this name.
pub fn manifest_of(name: &str, found: &Manifest) -> ModelManifest {
    let file = |file: &crate::model::manifest::ManifestFile| ManifestFile {
        path: file.path.clone(),
        len_bytes: file.length,
        sha256: file.sha256,
    };
    ModelManifest::new(name, found.files().iter().map(file).collect())
}

/// The statement's record of a pass.
pub fn pass_record(plan: &Plan) -> Pass {
    let batch = plan.pass.batch;
    Pass {
        start_position: plan.pass.start as u64,
        token_count: plan.pass.tokens as u64,
        plan_digest: plan.digest(),
        logits_rows: 1,
        batch: (batch.passes > 1)
            .then_some(Batch { passes: batch.passes as u64, rows: batch.rows as u64 }),
    }
}

/// What a statement's pass was launched together with; `None` if it ran alone.
pub fn stated_batch(pass: &Pass) -> Option<plan::Batch> {
    // The statement's own rules bound both counts.
    pass.batch.map(|batch| plan::Batch { passes: batch.passes as usize, rows: batch.rows as usize })
}

/// The statement's word for the end of a generation.
pub fn finish_reason(finish: Finish) -> FinishReason {
    match finish {
        Finish::Stop => FinishReason::Stop,
        Finish::Length => FinishReason::Length,
    }
}

/// The rows of an engine's list that are products of these plans: an engine also
/// lists the launches of other sequences.
pub fn used(dispatch: &[DispatchRow], plans: &[Plan]) -> Vec<DispatchRow> {
    let due = products(plans);
    let is_due = |row: &&DispatchRow| due.contains(&row.shape());
    dispatch.iter().filter(is_due).cloned().collect()
}

/// The distinct matrix products of some plans as they were launched, without
/// algorithms: what an engine without a library used, and what any list of dispatch
/// rows must cover.
pub fn products(plans: &[Plan]) -> BTreeSet<DispatchRow> {
    let steps = plans.iter().flat_map(|plan| plan.steps.iter().map(|step| (step, plan.pass.batch)));
    let rows = steps.filter_map(|(step, batch)| match step.op {
        Op::Linear { k } => Some(DispatchRow {
            op: LINEAR.into(),
            m: batch.product_rows(step.layer.is_some()) as u64,
            n: step.columns as u64,
            k: k as u64,
            recipe: step.recipe.to_string(),
            algorithm: None,
        }),
        Op::Embedding
        | Op::RmsNorm { .. }
        | Op::Rope { .. }
        | Op::Attention { .. }
        | Op::Add
        | Op::SiluMul
        | Op::LastToken
        | Op::Argmax => None,
    });
    rows.collect()
}

/// Name of matrix products in dispatch rows.
pub const LINEAR: &str = "linear";

/// Name of the one sampling rule there is: the largest logit.
pub const GREEDY: &str = "greedy";
