//! The whole path on the tiny model: one computation, whatever computes it and
//! in whatever order.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

mod support;

use std::fs;

use attest::engine::emulator::Emulator;
use attest::engine::generate::{StopRule, generate, layout};
use attest::engine::{Flow, Progress, Tap, run};
use attest::isa::mma::Simd;
use attest::model::qwen3;
use attest::num::Tensor;
use attest::plan::{Contract, LOGITS, Pass, Plan, Step};
use attest::transcript::Transcript;
use attest::transcript::record::Recording;
use attest::transcript::statement::{Engine, LogitsMode, TraceMode};
use attest::transcript::tap::RecordTap;
use attest::verify::trust::TrustStore;

use support::{Making, assert_verified, check, mma, model, tiny, trust};

/// One of the transcripts that lie in the repository.
fn committed(name: &str) -> Transcript {
    let path = tiny().join(name);
    let file = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Transcript::parse(file).unwrap()
}

fn committed_trust() -> TrustStore {
    TrustStore::from_toml(&fs::read_to_string(tiny().join("trust.toml")).unwrap()).unwrap()
}

const H200: &str = "transcript.cbor";
const EMULATOR: &str = "transcript-emulator.cbor";

#[test]
fn the_transcript_of_the_h200_verifies() {
    let transcript = committed(H200);
    assert_eq!(transcript.statement().environment.engine, Engine::Cuda);
    assert_eq!(transcript.statement().logits.mode, LogitsMode::Full);
    assert_verified(&check(transcript.as_bytes(), &committed_trust(), None), H200);
}

#[test]
fn the_transcript_of_the_emulator_verifies() {
    let transcript = committed(EMULATOR);
    assert_eq!(transcript.statement().environment.engine, Engine::Emulator);
    assert_verified(&check(transcript.as_bytes(), &committed_trust(), None), EMULATOR);
}

#[test]
fn the_h200_and_the_emulator_computed_the_same() {
    let (gpu, emulator) = (committed(H200), committed(EMULATOR));
    assert!(gpu.section("logits").is_some_and(|logits| !logits.is_empty()));
    for kind in ["logits", "trace"] {
        assert!(gpu.section(kind) == emulator.section(kind), "section {kind} differs");
    }
    assert_eq!(gpu.key_id(), emulator.key_id());
    let (gpu, emulator) = (gpu.statement(), emulator.statement());
    assert_eq!(gpu.tokens_in, emulator.tokens_in);
    assert_eq!(gpu.tokens_out, emulator.tokens_out);
    assert_eq!(gpu.finish, emulator.finish);
    assert_eq!(gpu.passes, emulator.passes, "plan digests included");
    assert_eq!(gpu.logits, emulator.logits, "root included");
    assert_eq!(gpu.trace, emulator.trace, "root included");
    assert_eq!(gpu.model, emulator.model);
    assert_eq!(gpu.prompt, fs::read(tiny().join("prompt.txt")).unwrap());
}

#[test]
fn the_emulator_makes_the_committed_transcript_again() {
    let transcript = committed(EMULATOR);
    let stated = transcript.statement();
    let making = Making {
        prompt: std::str::from_utf8(&stated.prompt).unwrap(),
        max_new_tokens: stated.sampling.max_new_tokens as usize,
        logits: stated.logits.mode,
        trace: stated.trace.mode,
        ..Making::default()
    };
    let mut made = making.make();
    // The private key is not in the repository, the clock and the names are not ours.
    made.statement.model.name.clone_from(&stated.model.name);
    made.statement.claimed_time = stated.claimed_time;
    made.statement.nonce.clone_from(&stated.nonce);
    made.statement.tool = stated.tool.clone();
    // Of files beside the model's own, which may change.
    made.statement.model.oms_root = stated.model.oms_root;
    // What is signed, byte for byte.
    assert_eq!(made.statement.digest().unwrap(), transcript.digest());
    for (section, contents) in stated.sections.iter().zip(&made.contents) {
        let kind = &section.kind;
        assert!(transcript.section(kind) == Some(&contents[..]), "section {kind} differs");
    }
}

#[test]
fn the_file_does_not_depend_on_the_number_of_threads() {
    let making = Making { trace: TraceMode::Steps, ..Making::default() };
    let file = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| making.make().seal().as_bytes().to_vec())
    };
    let one = file(1);
    for threads in [2, 3, 7] {
        assert!(file(threads) == one, "{threads} threads write another file");
    }
}

#[test]
fn the_file_does_not_depend_on_the_vector_instructions() {
    let making = Making { trace: TraceMode::Steps, ..Making::default() };
    let file = |simd| Making { simd, ..making }.make().seal().as_bytes().to_vec();
    let portable = file(Simd::PORTABLE);
    for simd in Simd::available() {
        assert!(file(simd) == portable, "{} writes another file", simd.name());
    }
}

#[test]
fn every_recording_mode_verifies_and_has_the_same_logits_root() {
    let root = Making::default().make().statement.logits.root;
    for logits in [LogitsMode::Full, LogitsMode::Hash] {
        for trace in [TraceMode::None, TraceMode::Layers, TraceMode::Steps] {
            let made = Making { logits, trace, ..Making::default() }.make();
            let done = check(made.seal().as_bytes(), &trust(), None);
            assert_verified(&done, &format!("{logits:?} {trace:?}"));
            assert_eq!(made.statement.logits.root, root);
        }
    }
}

/// The first `count` token ids of the example's prompt, over and over.
fn prompt_of(count: usize) -> Vec<u32> {
    let text = fs::read(tiny().join("prompt.txt")).unwrap();
    model().tokenizer().encode(&text).unwrap().into_iter().cycle().take(count).collect()
}

fn emulator(positions: usize) -> Emulator<'static> {
    Emulator::new(&mma(), Simd::detect(), model().weights(), positions)
}

fn recorder() -> RecordTap<fn(&Progress<'_>)> {
    RecordTap::new(LogitsMode::Full, TraceMode::Steps, model().config().vocab_size, |_| {})
}

#[test]
fn pass_by_pass_and_layer_by_layer_give_the_same_outputs() {
    let rule = StopRule { max_new_tokens: 3, stop_ids: Vec::new() };
    // 64 keys are one tile of attention: 62 + 3 ends on its edge, 70 is past it.
    for count in [1, 17, 62, 70] {
        let prompt = prompt_of(count);
        let config = model().config();
        let mut tap = recorder();
        let mut engine = emulator(count + 3);
        let made = generate(&mut engine, config, Contract::Native, &prompt, &rule, &mut tap);
        let made = made.unwrap().unwrap();
        let sequential: Vec<Recording> = tap.finish().unwrap();

        let (plans, tokens) = layout(config, Contract::Native, &prompt, &made.tokens).unwrap();
        let mut tap = recorder();
        let chosen = run(&mut emulator(count + 3), &plans, &tokens, &mut tap).unwrap().unwrap();
        assert_eq!(plans, made.plans, "{count} tokens");
        assert_eq!(chosen.as_u32(), Some(&made.tokens[..]), "{count} tokens");
        assert!(tap.finish().unwrap() == sequential, "{count} tokens: outputs differ");
    }
}

/// Keeps the logits of the last pass.
struct LastLogits(Option<Tensor>);

impl Tap for LastLogits {
    fn wants(&self, _: &Pass, _: usize, step: &Step) -> bool {
        step.name == LOGITS
    }

    fn observe(&mut self, _: &Pass, _: usize, _: &Step, output: &Tensor) -> Flow {
        self.0 = Some(output.clone());
        Flow::Continue
    }
}

/// Logits after a prompt that is taken in pieces, one run a piece.
fn logits_in_pieces(prompt: &[u32], pieces: &[usize]) -> Tensor {
    let mut engine = emulator(prompt.len());
    let mut tap = LastLogits(None);
    let mut start = 0;
    for (index, &tokens) in pieces.iter().enumerate() {
        let pass = Pass::alone(index, start, tokens);
        let plan: Plan = qwen3::forward(model().config(), Contract::Native, pass).unwrap();
        let ids = prompt[start..start + tokens].to_vec();
        run(&mut engine, &[plan], &[ids], &mut tap).unwrap().unwrap();
        start += tokens;
    }
    assert_eq!(start, prompt.len());
    tap.0.unwrap()
}

#[test]
fn a_row_does_not_depend_on_what_it_is_batched_with() {
    for count in [2, 17, 70] {
        let prompt = prompt_of(count);
        let whole = logits_in_pieces(&prompt, &[count]);
        let one_by_one = logits_in_pieces(&prompt, &vec![1; count]);
        assert_eq!(one_by_one, whole, "{count} tokens, one by one");
        let halves = [count / 2, count - count / 2];
        assert_eq!(logits_in_pieces(&prompt, &halves), whole, "{count} tokens, in halves");
    }
    let prompt = prompt_of(70);
    let whole = logits_in_pieces(&prompt, &[70]);
    // Pieces that end before, on and after the edge of a tile of 64 keys.
    for pieces in [[63, 7], [64, 6], [65, 5]] {
        assert_eq!(logits_in_pieces(&prompt, &pieces), whole, "{pieces:?}");
    }
}
