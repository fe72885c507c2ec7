//! Making a record from a transcript and the report on it.

use attest::engine::generate::layout_in_batches;
use attest::model::Config;
use attest::plan::{Contract, LOGITS, Plan, Stack};
use attest::recipe::catalog::Catalog;
use attest::transcript::statement::Statement;
use attest::transcript::{Transcript, capture};
use attest::verify::report::SUBJECTS;
use attest::verify::trust::rfc3339;
use serde_json::Value;

use super::Failed;
use super::record::{Batch, Gpu, Logits, Model, Pinned, Record, Trace, Verifier};

/// What a report does not say of its making.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct By {
    pub(crate) threads: Option<u64>,
    pub(crate) seconds: Option<f64>,
}

/// Makes the record of a transcript and its report.
///
/// What was compared is counted in plans built here, each of which must have the digest
/// that the transcript commits to.
pub(crate) fn record(
    file: Vec<u8>,
    report: &Value,
    config: &Config,
    by: &By,
) -> Result<Record, Failed> {
    let transcript = Transcript::parse(file)?;
    let digest = transcript.digest().to_string();
    if report["transcript"] != digest.as_str() {
        let of = &report["transcript"];
        return Err(format!("the report is of transcript {of}, the file is {digest}").into());
    }
    let statement = transcript.statement();
    let gpu = statement.environment.gpu.as_ref();
    let gpu = gpu.ok_or("the transcript was not made on a GPU")?;
    let plans = plans(statement, config)?;
    let (verdict, findings) = (text(report, "verdict")?, findings(report)?);
    let exact = verdict == "VERIFIED" && findings.is_empty();
    Ok(Record {
        transcript: digest,
        gpu: Gpu::of(gpu),
        stack: statement.stack.clone(),
        profile: Pinned::of(&statement.profile),
        catalogue: Pinned::of(&statement.catalogue),
        model: Model::of(statement, config),
        prompt_tokens: statement.tokens_in.len() as u64,
        generated_tokens: statement.tokens_out.len() as u64,
        batch: batch(statement),
        logits: Logits {
            mode: statement.logits.mode.word().into(),
            rows: statement.logits.count,
            elements: statement.logits.count * statement.logits.vocab,
        },
        trace: trace(statement, &plans)?,
        verdict,
        differing: exact.then_some(0),
        findings,
        verifier: Verifier {
            version: text(&report["verifier"], "version")?,
            simd: text(&report["verifier"], "simd")?,
            threads: by.threads,
            seconds: by.seconds,
        },
        claimed_time: rfc3339(statement.claimed_time),
    })
}

/// The plans of every pass, with the digests that the statement has.
fn plans(statement: &Statement, config: &Config) -> Result<Vec<Plan>, Failed> {
    let stack = Stack::by_name(&statement.stack)
        .ok_or_else(|| format!("stack {:?} is not known", statement.stack))?;
    let catalog = Catalog::by_id(&statement.catalogue.id)?;
    if catalog.digest() != statement.catalogue.digest {
        let id = &statement.catalogue.id;
        return Err(format!("catalogue {id} is not the one that the transcript names").into());
    }
    let contract = Contract::new(stack, &catalog);
    let batches: Vec<_> = statement.passes.iter().map(capture::stated_batch).collect();
    let (tokens_in, tokens_out) = (&statement.tokens_in, &statement.tokens_out);
    let (plans, _) = layout_in_batches(config, contract, tokens_in, tokens_out, &batches)?;
    if plans.len() != statement.passes.len() {
        let (found, due) = (statement.passes.len(), plans.len());
        return Err(format!("the transcript has {found} passes, {due} are due").into());
    }
    for (index, (stated, plan)) in statement.passes.iter().zip(&plans).enumerate() {
        let (expected, found) = (stated.plan_digest, capture::pass_record(plan).plan_digest);
        if expected != found {
            let sentence =
                format!("pass {index} has plan digest {expected}, these sizes give {found}");
            return Err(sentence.into());
        }
    }
    Ok(plans)
}

/// What the passes were launched with; `None` if all ran alone.
fn batch(statement: &Statement) -> Option<Batch> {
    let together = || statement.passes.iter().filter_map(|pass| pass.batch).map(|b| b.passes);
    together().max().map(|most_together| Batch { most_together, passes: together().count() as u64 })
}

/// Counts the elements of the outputs that the trace holds.
fn trace(statement: &Statement, plans: &[Plan]) -> Result<Trace, Failed> {
    let mode = statement.trace.mode;
    let (mut outputs, mut elements, mut logits) = (0, 0, 0);
    for step in plans.iter().flat_map(|plan| plan.steps.iter()).filter(|step| mode.includes(step)) {
        let size = (step.rows * step.columns) as u64;
        outputs += 1;
        elements += size;
        logits += if step.name == LOGITS { size } else { 0 };
    }
    if outputs != statement.trace.count {
        let found = statement.trace.count;
        return Err(format!("the trace has {found} outputs, {outputs} are due").into());
    }
    let elements_beside_logits = elements - logits;
    Ok(Trace { mode: mode.word().into(), outputs, elements, elements_beside_logits })
}

/// The checks that neither passed nor were not asked for.
fn findings(report: &Value) -> Result<Vec<Value>, Failed> {
    let checks = report["checks"].as_array().ok_or("the report has no checks")?;
    for subject in SUBJECTS {
        let subject = serde_json::to_value(subject)?;
        if !checks.iter().any(|check| check["subject"] == subject) {
            return Err(format!("the report has no check of {subject}").into());
        }
    }
    let open = |check: &&Value| {
        // A nonce is asked for by whoever awaits a fresh run; the bits are the same.
        let unasked = check["outcome"] == "not_asked" && check["subject"] == "freshness";
        check["outcome"] != "passed" && !unasked
    };
    Ok(checks.iter().filter(open).cloned().collect())
}

fn text(json: &Value, name: &str) -> Result<String, Failed> {
    let text = json[name].as_str().ok_or_else(|| format!("the report has no {name}"))?;
    Ok(text.to_owned())
}
