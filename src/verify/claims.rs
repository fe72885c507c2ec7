//! What a statement says that no re-execution can check.

use serde::Serialize;

use super::trust::rfc3339;
use crate::transcript::statement::{FinishReason, Statement};
use crate::transcript::{TRACE_SECTION, Transcript};

/// A field that rests on the signer's word alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Claim {
    /// The field, as `attest inspect --json` names it.
    pub field: &'static str,
    /// Its value.
    pub value: String,
}

/// What a spot check leaves to the signer's word besides: the digest of a trace that it does
/// not compute whole.
pub(super) fn of_spot_check(mut claims: Vec<Claim>, transcript: &Transcript) -> Vec<Claim> {
    let sections = transcript.statement().sections.iter();
    let withheld = |kind: &str| kind == TRACE_SECTION && transcript.withholds(kind);
    if !claims.is_empty() {
        claims.extend(sections.filter(|section| withheld(&section.kind)).map(|section| Claim {
            field: "sections.trace.sha256",
            value: section.sha256.to_string(),
        }));
    }
    claims
}

/// Lists the fields that verification takes from the signer.
///
/// The engine is among them: a match shows that the output equals the
/// computation, not that a GPU did it.
pub(super) fn claims(statement: &Statement) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut add = |field, value: String| claims.push(Claim { field, value });
    add("tool", format!("{} {}", statement.tool.name, statement.tool.version));
    add("model.name", statement.model.name.clone());
    if let Some(root) = statement.model.oms_root {
        add("model.oms_root", root.to_string());
    }
    add("environment.engine", statement.environment.engine.word().into());
    if let Some(gpu) = &statement.environment.gpu {
        add("environment.gpu.name", gpu.name.clone());
        add("environment.gpu.driver", gpu.driver.clone());
        add("environment.gpu.cuda_driver", gpu.cuda_driver.clone());
        if let Some(runtime) = &gpu.cuda_runtime {
            add("environment.gpu.cuda_runtime", runtime.clone());
        }
        // Known to this program, which does not show that they were used.
        add("environment.gpu.cublaslt", gpu.cublaslt.clone());
        add("environment.gpu.nvrtc", gpu.nvrtc.clone());
        let kernels = format!("{} sources, compiled with the stated options", gpu.kernels.len());
        add("environment.gpu.kernels", kernels);
        add("dispatch", format!("algorithms of {} products", statement.dispatch.len()));
    }
    // Under `native` no recipe depends on a batch, under `native-stock` many batches
    // give the same ones.
    let batched = statement.passes.iter().filter(|pass| pass.batch.is_some()).count();
    if batched > 0 {
        let of = statement.passes.len();
        add("passes.batch", format!("what {batched} of {of} passes were launched with"));
    }
    match statement.finish {
        // Any limit from the length on gives the same tokens.
        FinishReason::Stop => {
            add("sampling.max_new_tokens", statement.sampling.max_new_tokens.to_string());
        }
        FinishReason::Length => {}
    }
    add("claimed_time", rfc3339(statement.claimed_time));
    if let Some(nonce) = &statement.nonce {
        add("nonce", hex::encode(nonce));
    }
    if !statement.extensions.is_empty() {
        let keys: Vec<String> = statement.extensions.iter().map(|e| e.key.to_string()).collect();
        add("unknown keys", keys.join(", "));
    }
    claims
}
