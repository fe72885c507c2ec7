//! Transcripts of a prover who computed otherwise than stated: the report names how.

use attest::engine::emulator::{Emulator, Reform};
use attest::engine::run;
use attest::isa::mma::MmaProfile;
use attest::isa::profile::Profile;
use attest::model::Content;
use attest::num::{Bf16, F32};
use attest::plan::{Op, Step};
use attest::recipe::Recipe;
use attest::transcript::opening::{Challenge, Draw};
use attest::transcript::statement::{LogitsMode, TraceMode};
use attest::transcript::tap::RecordTap;
use attest::transcript::{Transcript, write};
use attest::verify::report::{Check, Difference, Finding, Outcome, Verdict};
use attest::verify::{Anchor, Request, verify};

use crate::lies::change_logit;
use crate::support::{self, Made, Making, mma, model, tiny};

/// The same prompt and token limit, computed with changed steps and another instruction;
/// what is stated stays, but for the tokens that come out.
fn forge(making: &Making<'_>, mma: &MmaProfile, change: &dyn Fn(&mut Step)) -> Made {
    forge_with(making, mma, None, change)
}

/// As [`forge`], with other weights of products.
fn forge_with(
    making: &Making<'_>,
    mma: &MmaProfile,
    reform: Option<Reform>,
    change: &dyn Fn(&mut Step),
) -> Made {
    let mut made = making.make();
    // The chosen tokens are the next passes': until they are those that were fed.
    for _ in 0..=making.max_new_tokens {
        let (mut plans, tokens) = made.layout();
        for plan in &mut plans {
            let mut steps = plan.steps.to_vec();
            steps.iter_mut().for_each(change);
            plan.steps = steps.into();
        }
        let mut engine = Emulator::new(mma, making.simd, model().weights(), 128);
        engine.set_reform(reform);
        let vocab = model().config().vocab_size;
        let mut tap = RecordTap::new(making.logits, making.trace, vocab, |_| {});
        let chosen = run(&mut engine, &plans, &tokens, &mut tap).unwrap().unwrap();
        let mut recording = tap.finish().unwrap().remove(0);
        made.contents = recording.contents().unwrap();
        made.statement.logits = recording.logits.clone();
        made.statement.trace = recording.trace.clone();
        made.statement.sections = recording.sections.clone();
        if making.trace == TraceMode::Cells {
            let item_0 = write::item_0(&made.statement, &support::key()).unwrap();
            made.whole.clear();
            write::whole(&item_0, &mut recording, &mut made.whole).unwrap();
        }
        if chosen.as_u32().unwrap() == made.statement.tokens_out {
            return made;
        }
        made.statement.tokens_out = chosen.as_u32().unwrap().to_vec();
    }
    panic!("the tokens do not settle");
}

fn finding(made: &Made) -> (Finding, Option<usize>) {
    find(made.seal().as_bytes(), None)
}

fn find(file: &[u8], draw: Option<Draw>) -> (Finding, Option<usize>) {
    let mut announced = None;
    let done = verify(Request {
        file: file.to_vec().into(),
        anchor: Anchor::Store(&support::trust()),
        nonce: None,
        challenge: draw.map(|draw| Challenge {
            transcript: Transcript::parse(file.to_vec()).unwrap().digest(),
            draw,
        }),
        simd: Making::default().simd,
        open_model: &|_| Content::open(&tiny().join("model")),
        progress: &mut |_| {},
        diagnosing: Some(&mut |alternatives| announced = Some(alternatives)),
    });
    assert_eq!(done.report.verdict(), Verdict::Mismatch, "{:?}", done.report);
    let found = |check: &Check| match &check.outcome {
        Outcome::Failed { finding, .. } => finding.clone(),
        Outcome::Passed { .. }
        | Outcome::Partial { .. }
        | Outcome::NotAsked { .. }
        | Outcome::NotDecided { .. } => None,
    };
    let found = done.report.checks.iter().find_map(found);
    (found.unwrap_or_else(|| panic!("{:?}", done.report)), announced)
}

/// The step at which a forgery differs first, and the diagnosis.
fn diagnosis(made: &Made) -> (String, String) {
    let (finding, announced) = finding(made);
    assert!(announced.is_some(), "an attempt is announced");
    (finding.step, finding.diagnosis.unwrap())
}

/// So many outputs that other last bits of binary32 show in some bf16.
fn long() -> Making<'static> {
    let prompt = "The whale rose slowly out of the water, and for a moment no man in the boat \
                  dared to speak or to move an oar.";
    Making { prompt, max_new_tokens: 40, ..Making::default() }
}

fn traced() -> Making<'static> {
    Making { trace: TraceMode::Steps, ..long() }
}

fn a100() -> MmaProfile {
    *Profile::by_id("a100").unwrap().mma("bf16").unwrap()
}

/// Changes the recipe of one step.
fn recipe(name: &'static str, recipe: Recipe) -> impl Fn(&mut Step) {
    move |step| {
        if step.name == name {
            step.recipe = recipe;
        }
    }
}

fn eps(bits: u32) -> impl Fn(&mut Step) {
    move |step| {
        if let Op::RmsNorm { eps, .. } = &mut step.op {
            *eps = F32(bits);
        }
    }
}

/// Whether a diagnosis says that the bits are those of `subject` computed so: alone, or
/// one of several ways that give the same ones.
fn names(found: &str, subject: &str, used: &str) -> bool {
    let causes = found.strip_prefix("matches if ").unwrap_or_default().split("; or if ");
    let mut causes = causes.filter_map(|cause| cause.split_once(" used "));
    causes.any(|(named, ways)| named == subject && ways.split(" or ").any(|way| way == used))
}

/// As [`names`], of every pass up to the differing one.
fn names_all(forged: &Made, found: &str, subject: &str, used: &str) -> bool {
    let passes = match finding(forged).0.pass {
        0 => "pass 0".to_owned(),
        last => format!("passes 0 to {last}"),
    };
    names(found, &format!("{subject} of {passes}"), used)
}

const A100: &str = "the bf16 instruction of a100 and l40s";

const HALVES: Recipe = Recipe::SplitKWorkspaceF32 { slices: 2 };

#[test]
fn a_drawn_cell_names_the_step_that_was_computed_otherwise() {
    let making = Making { trace: TraceMode::Cells, ..long() };
    let draw = || Some(Draw { cells: u64::MAX, nonce: vec![1] });
    let cases: [(&str, &str, &str); 2] = [
        ("layers.1.mlp.down_proj", "layers.1.mlp.residual", "an input of what is handed on"),
        ("layers.0.self_attn.v_proj", "layers.0.self_attn.v_proj", "what is kept"),
    ];
    for (name, differs, reason) in cases {
        let made = forge(&making, &mma(), &recipe(name, HALVES));
        let (finding, announced) = find(&made.whole, draw());
        assert_eq!(finding.step, differs, "{reason}");
        assert!(announced.is_some());
        let found = finding.diagnosis.unwrap();
        assert!(names(&found, name, "split_k_workspace_f32(slices=2,k_tile=64)"), "{found}");
    }
    let made = forge(&making, &a100(), &|_| {});
    let (finding, _) = find(&made.whole, draw());
    let found = finding.diagnosis.unwrap();
    assert!(found.starts_with("matches if layers.0.self_attn."), "{found}");
}

#[test]
fn another_recipe_of_a_product_is_named() {
    for name in ["layers.1.mlp.down_proj", "layers.0.self_attn.o_proj", "lm_head"] {
        let forged = forge(&traced(), &mma(), &recipe(name, HALVES));
        let (step, found) = diagnosis(&forged);
        assert_eq!(step, name);
        assert!(names(&found, name, "split_k_workspace_f32(slices=2,k_tile=64)"), "{found}");
    }
    // The head's operands are computed, so they are at hand without a trace too.
    for logits in [LogitsMode::Full, LogitsMode::Hash] {
        let making = Making { logits, ..long() };
        let (step, found) = diagnosis(&forge(&making, &mma(), &recipe("lm_head", HALVES)));
        assert_eq!(step, "lm_head", "{logits:?}");
        assert!(names(&found, "lm_head", "split_k_workspace_f32(slices=2,k_tile=64)"), "{found}");
    }
}

#[test]
fn another_gpu_is_named_with_and_without_a_trace() {
    let (step, found) = diagnosis(&forge(&traced(), &a100(), &|_| {}));
    assert!(step.starts_with("layers.0.") && names(&found, &step, A100), "{found}");

    let forged = forge(&long(), &a100(), &|_| {});
    let (step, found) = diagnosis(&forged);
    assert_eq!(step, "lm_head");
    assert!(names_all(&forged, &found, "every product and attention", A100), "{found}");
}

#[test]
fn another_epsilon_is_named_with_and_without_a_trace() {
    let other = eps(0x3727_c5ac); // 1e-5
    let (step, found) = diagnosis(&forge(&traced(), &mma(), &other));
    assert!(names(&found, &step, "eps=1e-5"), "{found}");
    let forged = forge(&long(), &mma(), &other);
    let (step, found) = diagnosis(&forged);
    assert_eq!(step, "lm_head");
    assert!(names_all(&forged, &found, "every rms_norm", "eps=1e-5"), "{found}");
}

/// Weights through 8-bit integers with a scale a row, in the host's arithmetic.
#[allow(clippy::float_arithmetic)] // the oracle of the verifier's form
fn int8(step: &Step, weight: &[Bf16], k: usize) -> Option<Vec<Bf16>> {
    step.layer?;
    let row = |row: &[Bf16]| -> Vec<Bf16> {
        let values: Vec<f32> = row.iter().map(|x| x.widen().to_host()).collect();
        let most = values.iter().fold(0f32, |most, x| most.max(x.abs()));
        let scale = most / 127.0;
        let back = |x: &f32| F32::from_host((x / scale).round_ties_even() * scale);
        values.iter().map(|x| Bf16::round(back(x))).collect()
    };
    Some(weight.chunks(k).flat_map(row).collect())
}

#[test]
fn quantised_weights_are_named_with_and_without_a_trace() {
    let (step, found) = diagnosis(&forge_with(&traced(), &mma(), Some(int8), &|_| {}));
    assert_eq!(step, "layers.0.self_attn.q_proj");
    assert_eq!(found, format!("matches if {step} used weights rounded to INT8 by rows"));
    let forged = forge_with(&long(), &mma(), Some(int8), &|_| {});
    let (step, found) = diagnosis(&forged);
    assert_eq!(step, "lm_head");
    let form = "weights rounded to INT8 by rows";
    assert!(names_all(&forged, &found, "every product in a layer", form), "{found}");
}

#[test]
fn a_trace_of_layers_bounds_where_it_began() {
    let making = Making { trace: TraceMode::Layers, ..long() };
    let second = |step: &mut Step| {
        if step.layer == Some(1) {
            eps(0x3727_c5ac)(step);
        }
    };
    let (step, found) = diagnosis(&forge(&making, &mma(), &second));
    assert_eq!(step, "layers.1.mlp.residual");
    assert_eq!(found, "matches if every rms_norm of pass 0 from step 18 on used eps=1e-5");
}

#[test]
fn a_bit_that_nothing_explains_is_said_to_be_one() {
    // With a trace: the operands are known to agree.
    let mut lie = traced().make();
    change_logit(&mut lie, 1, 700);
    let (step, found) = diagnosis(&lie);
    assert_eq!(step, "lm_head");
    assert_eq!(found, "none of 7 alternatives gives the recorded bits");

    // Without: nothing shows where it began.
    let mut lie = Making::default().make();
    change_logit(&mut lie, 1, 700);
    let (_, found) = diagnosis(&lie);
    let expected = "alternatives gives the recorded bits; the transcript has no output of steps 0 \
                    to 36, so the difference may have begun at any of them";
    assert!(found.starts_with("none of ") && found.ends_with(expected), "{found}");

    // A step that has one way of being computed.
    let mut lie = traced().make();
    lie.contents[1][0] ^= 1;
    lie.commit();
    let (finding, announced) = finding(&lie);
    assert_eq!((finding.step.as_str(), announced), ("embed_tokens", None));
    assert_eq!(finding.diagnosis.unwrap(), "no alternative is known for this operation");
}

#[test]
fn a_verification_that_is_not_to_diagnose_tries_nothing() {
    let mut lie = Making::default().make();
    change_logit(&mut lie, 1, 700);
    let done = support::check(lie.seal().as_bytes(), &support::trust(), None);
    assert_eq!(done.report.verdict(), Verdict::Mismatch);
    let json = serde_json::to_value(&done.report).unwrap();
    assert_eq!(json["checks"][7]["finding"]["diagnosis"], serde_json::Value::Null, "{json}");
    // The rest of the finding is the same.
    let Finding { step_index, difference, diagnosis, .. } = finding(&lie).0;
    assert!(diagnosis.is_some() && step_index == 37);
    assert!(matches!(difference, Difference::Element { column: 700, .. }));
}
