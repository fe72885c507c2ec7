//! What a verification will cost, found out before anything is executed.
//!
//! Everything cheap is checked as [`super::verify`] checks it; of the model only
//! `config.json` is read. Nothing is compared, so nothing is verified.

use super::admission::{Admitted, admit};
use super::environment::Refusal;
use super::report::{Report, Subject, Verdict};
use super::{Anchor, Input, identity, prepare};
use crate::engine::{linear, memory, product};
use crate::model::ModelError;
use crate::model::content::{CONFIG, Configuration};
use crate::model::files::ModelFile;
use crate::num::sha256;
use crate::plan::{Op, Plan};
use crate::transcript::Transcript;
use crate::transcript::statement::ModelManifest;

/// What would be verified, against what.
pub struct Request<'a> {
    /// The transcript's file.
    pub file: Input,
    /// Whose signature counts.
    pub anchor: Anchor<'a>,
    /// The nonce that was asked for, if one was.
    pub nonce: Option<Vec<u8>>,
    /// Reads the configuration of the model that a manifest names.
    pub open_config: &'a dyn Fn(&ModelManifest) -> Result<Configuration, ModelError>,
    /// Threads that would execute.
    pub threads: usize,
}

/// The cheap checks, and the cost if they hold.
#[derive(Debug)]
pub struct Foreseen {
    /// The checks; those that a dry run does not do are not decided.
    pub report: Report,
    /// The transcript, unless it is malformed.
    pub transcript: Option<Transcript>,
    /// The cost, unless a check failed after which nothing would be executed.
    pub cost: Option<Cost>,
}

/// What a verification takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Passes.
    pub passes: usize,
    /// Tokens that the passes take, all together.
    pub tokens: usize,
    /// Length of the model's rows, the most common length of a dot product.
    pub hidden_size: usize,
    /// Multiply-adds of products with weights, the last one apart.
    pub linear: u64,
    /// Multiply-adds of the product that gives the logits.
    pub logits: u64,
    /// Multiply-adds of attention: of its two products, keys that a row sees.
    pub attention: u64,
    /// Bytes of files that are hashed.
    pub hashed_bytes: u64,
    /// Bytes of weights that products read.
    pub read_bytes: u64,
    /// Most bytes held at once beside the mapped weights, about.
    pub memory_bytes: u64,
}

impl Cost {
    /// Multiply-adds of everything.
    pub fn multiply_adds(&self) -> u64 {
        self.linear + self.logits + self.attention
    }
}

/// Does the cheap checks and adds up the cost.
pub fn forecast(request: Request<'_>) -> Foreseen {
    let admitted = admit(request.file, &request.anchor, request.nonce.as_deref());
    let Admitted { mut report, transcript, .. } = match admitted {
        Ok(admitted) => admitted,
        Err(refused) => {
            let (report, transcript) = (refused.report, refused.transcript);
            return Foreseen { report, transcript, cost: None };
        }
    };
    let stated = &transcript.statement().model;
    let config = (request.open_config)(stated)
        .map_err(|error| identity::unreadable(&error))
        .and_then(|read| is_stated(&read.file, stated).map(|()| read.config));
    let config = match config {
        Ok(config) => config,
        Err(Refusal { leads_to, detail }) => {
            report.fail(Subject::Model, leads_to, detail);
            let report = report.close("not reached: the model is not the one stated");
            return Foreseen { report, transcript: Some(transcript), cost: None };
        }
    };
    let why = "a dry run reads config.json only, which is the manifest's";
    report.undecided(Subject::Model, why);
    // Item 0, unless the whole file is held.
    let length = transcript.as_bytes().len() as u64;
    let cost = prepare(&mut report, &transcript, &config).map(|work| {
        let mut cost = cost(&work.plans, request.threads);
        cost.hidden_size = config.hidden_size;
        cost.hashed_bytes = stated.files.iter().map(|file| file.len_bytes).sum();
        // Held meanwhile: the transcript, and the tokenizer.
        cost.memory_bytes += length + config.vocab_size as u64 * TOKENIZER_BYTES;
        cost
    });
    let report = report.close("not reached: a dry run executes nothing");
    Foreseen { report, transcript: Some(transcript), cost }
}

/// Requires the configuration to be the manifest's.
fn is_stated(file: &ModelFile, stated: &ModelManifest) -> Result<(), Refusal> {
    let expected = stated.file(CONFIG).map(|file| file.sha256);
    let found = sha256(&[file.bytes()]);
    if expected == Some(found) {
        return Ok(());
    }
    let expected = expected.map_or("no such file".into(), |digest| digest.to_string());
    let detail = format!("{} has SHA-256 {found}, expected {expected}", file.name());
    Err(Refusal { leads_to: Verdict::Incomplete, detail })
}

fn cost(plans: &[Plan], threads: usize) -> Cost {
    let mut cost = Cost { passes: plans.len(), ..Cost::default() };
    for plan in plans {
        cost.tokens += plan.pass.tokens;
        for step in plan.steps.iter() {
            let multiply_adds = step.multiply_adds(&plan.pass);
            match step.op {
                Op::Linear { .. } if step.layer.is_none() => cost.logits += multiply_adds,
                Op::Linear { .. } => cost.linear += multiply_adds,
                Op::Attention { .. } => cost.attention += multiply_adds,
                Op::Embedding
                | Op::RmsNorm { .. }
                | Op::Rope { .. }
                | Op::Add
                | Op::SiluMul
                | Op::LastToken
                | Op::Argmax => {}
            }
        }
    }
    for (index, step) in plans.iter().take(1).flat_map(|plan| plan.steps.iter().enumerate()) {
        if let Op::Linear { k } = step.op {
            let shares = linear::shares(plans.iter().filter_map(|plan| plan.steps.get(index)));
            let readings: usize = shares.iter().map(|own| product::readings(own.count())).sum();
            let weight = (step.columns * k * step.dtype.size_bytes()) as u64;
            cost.read_bytes += weight * readings as u64;
        }
    }
    cost.memory_bytes = memory::peak_bytes(plans, threads);
    cost
}

/// Memory of a tokenizer, an entry of its vocabulary: measured with Qwen3's, which
/// takes 134 MiB for 151,936 entries.
const TOKENIZER_BYTES: u64 = 925;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::generate::layout;
    use crate::model::Config;
    use crate::model::synth::Checkpoint;
    use crate::plan::Contract;

    /// The published sizes of Qwen3-4B.
    fn qwen3_4b() -> Config {
        Checkpoint::new("qwen3-4b", None, 0).unwrap().unwrap().config().clone()
    }

    fn cost_of(prompt: usize, generated: usize) -> Cost {
        let config = qwen3_4b();
        let (prompt, generated) = (vec![7; prompt], vec![7; generated]);
        let (plans, _) = layout(&config, Contract::Native, &prompt, &generated).unwrap();
        cost(&plans, 2)
    }

    #[test]
    fn counts_what_the_sizes_say() {
        let cost = cost_of(250, 1);
        let layer = 2560 * (4096 + 1024 + 1024) + 4096 * 2560 + 3 * 2560 * 9728;
        assert_eq!(cost.linear, 36 * 250 * layer);
        assert_eq!(cost.logits, 2560 * 151_936, "of the last token only");
        assert_eq!(cost.attention, 36 * 2 * 4096 * (250 * 251 / 2));
        assert_eq!((cost.passes, cost.tokens), (1, 250));
        let (layers, head) = (36 * layer * 2, 2560 * 151_936 * 2);
        assert_eq!(cost.read_bytes, layers + head, "every weight once");
        // Two parts of 300 rows.
        assert_eq!(cost_of(600, 1).read_bytes, 2 * layers + head);
        // Passes of one token, every row of logits: 10^12, the figure of the goal.
        assert_eq!(cost_of(1, 250).multiply_adds() / 1_000_000_000, 1014);
    }

    #[test]
    fn memory_is_bounded() {
        let gigabytes = |cost: Cost| cost.memory_bytes / 10_000_000; // hundredths
        // (prompt, generated, at most hundredths of a GB, reason)
        let cases = [
            (250, 1, 25, "a prompt"),
            (1, 250, 25, "as many rows of logits: one chunk of 76 MB"),
            (250, 64, 25, "both"),
            (4000, 1, 110, "a long prompt: keys and values are 590 MB of it"),
            (1, 4000, 110, "as many rows of logits, in chunks"),
        ];
        for (prompt, generated, most, reason) in cases {
            let found = gigabytes(cost_of(prompt, generated));
            assert!(found <= most, "{prompt} + {generated}: {found} > {most}, {reason}");
        }
    }
}
