//! The record of a whole model that ran on a GPU and was verified: a line of
//! `spec/evidence/models.jsonl`.

use attest::model::Config;
use attest::transcript::statement::{Artifact, GpuEnvironment, Statement};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Failed;

/// One line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// Digest of the transcript's statement.
    pub(crate) transcript: String,
    /// What the signer says it ran on.
    pub(crate) gpu: Gpu,
    pub(crate) stack: String,
    pub(crate) profile: Pinned,
    pub(crate) catalogue: Pinned,
    pub(crate) model: Model,
    pub(crate) prompt_tokens: u64,
    pub(crate) generated_tokens: u64,
    /// Absent if no pass was launched with others, as far as the transcript says.
    pub(crate) batch: Option<Batch>,
    pub(crate) logits: Logits,
    pub(crate) trace: Trace,
    pub(crate) verdict: String,
    /// 0 if every check of a verified transcript passed; else unknown, see `findings`.
    pub(crate) differing: Option<u64>,
    /// The checks that did not pass, as the report has them.
    pub(crate) findings: Vec<Value>,
    pub(crate) verifier: Verifier,
    /// When it ran, by the signer's clock (RFC 3339).
    pub(crate) claimed_time: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gpu {
    pub(crate) name: String,
    pub(crate) driver: String,
    pub(crate) cuda_driver: String,
    pub(crate) cublaslt: String,
    pub(crate) nvrtc: String,
}

/// A file of this repository by id and digest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pinned {
    pub(crate) id: String,
    pub(crate) digest: String,
}

/// The model's name and manifest, and its sizes (elements, or counts).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) layers: u64,
    pub(crate) hidden: u64,
    pub(crate) query_heads: u64,
    pub(crate) key_value_heads: u64,
    pub(crate) head: u64,
    pub(crate) intermediate: u64,
    pub(crate) vocabulary: u64,
}

/// Launches shared with other sequences.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batch {
    /// Most passes that one of this transcript's was launched with, itself included.
    pub(crate) most_together: u64,
    /// Passes of this transcript that were not alone.
    pub(crate) passes: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Logits {
    pub(crate) mode: String,
    pub(crate) rows: u64,
    /// Elements of all rows.
    pub(crate) elements: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trace {
    pub(crate) mode: String,
    pub(crate) outputs: u64,
    /// Elements of all traced outputs.
    pub(crate) elements: u64,
    /// The same without the rows of logits, which [`Logits`] counts.
    pub(crate) elements_beside_logits: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Verifier {
    pub(crate) version: String,
    pub(crate) simd: String,
    pub(crate) threads: Option<u64>,
    pub(crate) seconds: Option<f64>,
}

/// The records of a file. A transcript has one: two would be counted twice, or one would
/// hide the other.
pub(crate) fn read(lines: &str) -> Result<Vec<Record>, Failed> {
    let mut records: Vec<Record> = Vec::new();
    for (index, line) in lines.lines().enumerate() {
        let record: Record = serde_json::from_str(line)
            .map_err(|error| format!("models.jsonl, line {}: {error}", index + 1))?;
        if records.iter().any(|other| other.transcript == record.transcript) {
            let digest = &record.transcript;
            return Err(format!("models.jsonl has two records of transcript {digest}").into());
        }
        records.push(record);
    }
    Ok(records)
}

impl Gpu {
    pub(super) fn of(gpu: &GpuEnvironment) -> Self {
        Self {
            name: gpu.name.clone(),
            driver: gpu.driver.clone(),
            cuda_driver: gpu.cuda_driver.clone(),
            cublaslt: gpu.cublaslt.clone(),
            nvrtc: gpu.nvrtc.clone(),
        }
    }
}

impl Pinned {
    pub(super) fn of(artifact: &Artifact) -> Self {
        Self { id: artifact.id.clone(), digest: artifact.digest.to_string() }
    }
}

impl Model {
    pub(super) fn of(statement: &Statement, config: &Config) -> Self {
        Self {
            name: statement.model.name.clone(),
            digest: statement.model.digest.to_string(),
            layers: config.num_hidden_layers as u64,
            hidden: config.hidden_size as u64,
            query_heads: config.num_attention_heads as u64,
            key_value_heads: config.num_key_value_heads as u64,
            head: config.head_dim as u64,
            intermediate: config.intermediate_size as u64,
            vocabulary: config.vocab_size as u64,
        }
    }
}
