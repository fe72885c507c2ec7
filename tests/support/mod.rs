//! Transcripts made in process: the tiny model on the emulator, a fixed key.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // each test file uses its own part

mod gpu;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use attest::engine::batch::generate_batch;
use attest::engine::emulator::Emulator;
use attest::engine::generate::{Generation, StopRule, layout_in_batches};
use attest::isa::mma::{MmaProfile, Simd};
use attest::isa::profile::Profile;
use attest::model::{Content, Model};
use attest::num::{Digest, sha256};
use attest::plan::{Contract, Plan, Stack};
use attest::recipe::catalog::Catalog;
use attest::transcript::capture::{self, Circumstances};
use attest::transcript::key::PrivateKey;
use attest::transcript::leaf::{LeafHeader, logits_root};
use attest::transcript::record::Recording;
use attest::transcript::statement::{
    Artifact, Engine, Environment, LogitsMode, Statement, TraceMode,
};
use attest::transcript::tap::RecordTap;
use attest::transcript::{TRACE_SECTION, Transcript, merkle, write};
use attest::verify::report::{Outcome, Subject, Verdict};
use attest::verify::trust::TrustStore;
use attest::verify::{Anchor, Request, Verified, verify};

#[allow(unused_imports)] // each test file uses its own part
pub use gpu::{algorithm, pretend_gpu};

/// Profile and catalogue of the stack `native`.
pub const PROFILE: &str = "h200";
pub const CATALOGUE: &str = "h200-cublaslt-13.1";
/// 2026-11-30T13:35:00Z, inside the window of [`trust`].
pub const TIME: u64 = 1_796_045_700;

/// The folder `examples/tiny`.
pub fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tiny")
}

pub fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| Model::open(&tiny().join("model")).unwrap())
}

pub fn mma() -> MmaProfile {
    *Profile::by_id(PROFILE).unwrap().mma("bf16").unwrap()
}

/// The key of every transcript that the tests make.
pub fn key() -> PrivateKey {
    PrivateKey::from_seed(&[0x5a; 32])
}

/// A key that nobody trusts.
pub fn other_key() -> PrivateKey {
    PrivateKey::from_seed(&[0xa5; 32])
}

/// A trust file for [`key`] with a window of a day around [`TIME`].
pub fn trust_text(models: &str) -> String {
    format!(
        "[[key]]\nname = \"test\"\npublic_key = \"{}\"\nrole = \"prover\"\nmodels = {models}\n\
         valid_from = 2026-11-30\nvalid_until = 2026-12-01\n",
        key().public().to_hex()
    )
}

pub fn trust() -> TrustStore {
    TrustStore::from_toml(&trust_text("\"*\"")).unwrap()
}

/// What to make; the default takes a fraction of a second.
#[derive(Clone, Copy, Debug)]
pub struct Making<'a> {
    pub prompt: &'a str,
    pub max_new_tokens: usize,
    pub logits: LogitsMode,
    pub trace: TraceMode,
    pub simd: Simd,
}

impl Default for Making<'_> {
    fn default() -> Self {
        Self {
            prompt: "Call me",
            max_new_tokens: 3,
            logits: LogitsMode::Full,
            trace: TraceMode::None,
            simd: Simd::detect(),
        }
    }
}

/// A statement and the contents of its sections, not signed yet.
#[derive(Clone, Debug)]
pub struct Made {
    pub statement: Statement,
    pub contents: Vec<Vec<u8>>,
    /// Of a trace of cells, the file that has everything.
    pub whole: Vec<u8>,
}

impl Making<'_> {
    /// Runs the model and writes the statement.
    pub fn make(&self) -> Made {
        self.make_batch(&[self.prompt]).remove(0)
    }

    /// Runs these prompts together and writes a statement of each.
    pub fn make_batch(&self, prompts: &[&str]) -> Vec<Made> {
        let model = model();
        let encode = |prompt: &&str| model.tokenizer().encode(prompt.as_bytes()).unwrap();
        let tokens_in: Vec<Vec<u32>> = prompts.iter().map(encode).collect();
        let rule = StopRule {
            max_new_tokens: self.max_new_tokens,
            stop_ids: model.generation().eos_token_id.clone(),
        };
        let longest = tokens_in.iter().map(Vec::len).max().unwrap();
        let positions = longest + self.max_new_tokens;
        let mut engine = Emulator::new(&mma(), self.simd, model.weights(), positions);
        let vocab = model.config().vocab_size;
        let mut tap = RecordTap::new(self.logits, self.trace, vocab, |_| {});
        let config = model.config();
        let made =
            generate_batch(&mut engine, config, Contract::Native, &tokens_in, &rule, &mut tap);
        let made = made.unwrap().unwrap();
        let recordings = tap.finish().unwrap();
        let state = |(((prompt, tokens_in), made), mut recording): (
            ((&&str, Vec<u32>), Generation),
            Recording,
        )| {
            let profile = Profile::by_id(PROFILE).unwrap();
            let circumstances = Circumstances {
                model,
                profile: Artifact { id: profile.id, digest: profile.digest },
                catalogue: Artifact {
                    id: CATALOGUE.into(),
                    digest: Catalog::by_id(CATALOGUE).unwrap().digest(),
                },
                environment: Environment { engine: Engine::Emulator, gpu: None },
                dispatch: capture::products(&made.plans).into_iter().collect(),
                stack: Stack::Native,
                rule: &rule,
                prompt: (*prompt).into(),
                tokens_in,
                claimed_time: TIME,
                nonce: Some(vec![0xab; 16]),
            };
            let statement = capture::statement(circumstances, &made, &recording);
            let mut whole = Vec::new();
            if self.trace == TraceMode::Cells {
                let item_0 = write::item_0(&statement, &key()).unwrap();
                write::whole(&item_0, &mut recording, &mut whole).unwrap();
            }
            Made { statement, contents: recording.contents().unwrap(), whole }
        };
        prompts.iter().zip(tokens_in).zip(made).zip(recordings).map(state).collect()
    }
}

impl Made {
    pub fn seal(&self) -> Transcript {
        Transcript::seal(&self.statement, &self.contents, &key()).unwrap()
    }

    /// Plans and tokens of each pass, as a verifier lays them out.
    pub fn layout(&self) -> (Vec<Plan>, Vec<Vec<u32>>) {
        let (tokens_in, tokens_out) = (&self.statement.tokens_in, &self.statement.tokens_out);
        let batches: Vec<_> = self.statement.passes.iter().map(capture::stated_batch).collect();
        let config = model().config();
        layout_in_batches(config, Contract::Native, tokens_in, tokens_out, &batches).unwrap()
    }

    /// Makes every commitment that of the contents again, as a liar would.
    pub fn commit(&mut self) {
        for (section, contents) in self.statement.sections.iter_mut().zip(&self.contents) {
            section.len_bytes = contents.len() as u64;
            section.sha256 = sha256(&[contents]);
        }
        let logits = &self.statement.logits;
        let row = self.contents[0].len() / logits.count.max(1) as usize;
        let rows = self.contents[0].chunks(row.max(1)).map(|row| match logits.mode {
            LogitsMode::Full => sha256(&[row]),
            LogitsMode::Hash => Digest(row.try_into().unwrap()),
        });
        let rows: Vec<Digest> = rows.collect();
        self.statement.logits.root = logits_root(&self.statement, rows.into_iter());
        if self.statement.trace.mode != TraceMode::None {
            self.statement.trace.root = Some(self.trace_root());
        }
    }

    fn trace_root(&self) -> Digest {
        let mut digests = self.contents[1].chunks(32);
        let mut leaves = Vec::new();
        for plan in self.layout().0 {
            for (index, step) in plan.steps.iter().enumerate() {
                if !self.statement.trace.mode.includes(step) {
                    continue;
                }
                let header = LeafHeader {
                    kind: TRACE_SECTION,
                    pass: plan.pass.index as u64,
                    index: index as u64,
                    name: &step.name,
                    dtype: step.dtype,
                    shape: &[step.rows as u64, step.columns as u64],
                };
                leaves.push(header.hash(Digest(digests.next().unwrap().try_into().unwrap())));
            }
        }
        merkle::root(&leaves)
    }
}

/// Verifies a file against [`model`], whatever model it names.
pub fn check(file: &[u8], store: &TrustStore, nonce: Option<Vec<u8>>) -> Verified {
    verify(Request {
        file: file.to_vec().into(),
        anchor: Anchor::Store(store),
        nonce,
        challenge: None,
        simd: Simd::detect(),
        open_model: &|_| Content::open(&tiny().join("model")),
        progress: &mut |_| {},
        diagnosing: None,
    })
}

/// The checks that failed, with their verdicts and details.
pub fn failures(done: &Verified) -> Vec<(Subject, Verdict, String)> {
    let failed = |check: &attest::verify::report::Check| match &check.outcome {
        Outcome::Failed { leads_to, detail, .. } => {
            Some((check.subject, *leads_to, detail.clone()))
        }
        Outcome::Passed { .. }
        | Outcome::Partial { .. }
        | Outcome::NotAsked { .. }
        | Outcome::NotDecided { .. } => None,
    };
    done.report.checks.iter().filter_map(failed).collect()
}

/// Requires VERIFIED, showing the checks otherwise.
pub fn assert_verified(done: &Verified, what: &str) {
    assert_eq!(done.report.verdict(), Verdict::Verified, "{what}: {:#?}", done.report.checks);
}
