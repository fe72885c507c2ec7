//! Transcripts of a prover who holds a trusted key and lies: one field after the
//! other, signed again.

use attest::model::qwen3;
use attest::num::{Digest, Dtype};
use attest::transcript::statement::{Extension, LogitsMode, Statement, TraceMode};
use attest::transcript::{RefusalClass, Transcript};
use attest::verify::report::{Subject, Verdict};
use attest::verify::trust::TrustStore;

use crate::lies::{GPU_LIES, LIES, Lie, change_logit, gpu, realgorithm};
use crate::support::{
    self, Made, Making, assert_verified, check, failures, key, model, pretend_gpu, trust,
    trust_text,
};

use Subject::{Encoding, Environment, Execution, Sampling};
use Verdict::{Malformed, Mismatch};

fn traced() -> Made {
    Making { trace: TraceMode::Steps, ..Making::default() }.make()
}

/// The emulator's statement with the environment of a GPU that never ran.
pub(crate) fn pretended(making: &Making<'_>) -> Made {
    let mut made = making.make();
    pretend_gpu(&mut made.statement);
    made
}

/// Tells each lie, signs it, and requires it to be found for the right reason.
fn find_out(honest: &Made, lies: &[Lie]) {
    assert_verified(&check(honest.seal().as_bytes(), &trust(), None), "the honest transcript");
    for (name, tell, subject, verdict, words) in lies {
        let mut lie = honest.clone();
        tell(&mut lie);
        let (found, details) = match Transcript::seal(&lie.statement, &lie.contents, &key()) {
            Ok(transcript) => {
                let done = check(transcript.as_bytes(), &trust(), None);
                (done.report.verdict(), failures(&done))
            }
            // Sealing reads back what it writes, with the reader of `verify`.
            Err(error) => {
                assert_eq!(error.class(), RefusalClass::Malformed, "{name}");
                (Malformed, vec![(Encoding, Malformed, error.to_string())])
            }
        };
        assert_eq!(found, *verdict, "{name}: {details:?}");
        let detail = details.iter().find(|(failed, ..)| failed == subject);
        let Some((_, _, detail)) = detail else { panic!("{name}: {subject:?} in {details:?}") };
        for word in *words {
            assert!(detail.contains(word), "{name}: {word:?} is not in {detail:?}");
        }
    }
}

#[test]
fn every_lie_is_found_out_and_named() {
    find_out(&traced(), LIES);
}

#[test]
fn lies_about_the_gpu_are_found_out_and_named() {
    find_out(&pretended(&Making::default()), GPU_LIES);
}

/// Breaks when a field is added to the statement without a thought for this file.
#[test]
fn every_field_has_a_lie_or_is_a_claim() {
    let Statement {
        format_version: _,
        tool: _, // a claim
        numerics: _,
        model: _, // its name and OMS root are claims
        profile: _,
        catalogue: _,
        environment: _, // of which the GPU's, driver's and compiler's names are claims
        stack: _,
        sampling: _, // the limit is a claim where a stop token ended the text
        prompt: _,
        tokens_in: _,
        tokens_out: _,
        finish: _,
        dispatch: _, // that these algorithms ran is a claim
        passes: _,   // what a pass was launched together with is a claim
        logits: _,
        trace: _,
        sections: _,
        claimed_time: _, // a claim, inside the key's window
        nonce: _,        // a claim if none was asked for
        extensions: _,   // claims
    } = traced().statement;
}

#[test]
fn a_changed_logit_is_named_with_both_bit_patterns() {
    let honest = Making::default().make();
    let mut lie = honest.clone();
    change_logit(&mut lie, 1, 700);
    let done = check(lie.seal().as_bytes(), &trust(), None);
    let at = 2 * (1536 + 700);
    let shown = |made: &Made| {
        let bits = u16::from_le_bytes([made.contents[0][at], made.contents[0][at + 1]]);
        // The number is the binary32 with these upper bits.
        format!("{bits:04x} ({})", f32::from_bits(u32::from(bits) << 16))
    };
    let expected = format!(
        "element [0, 700] is {} in the transcript, {} computed",
        shown(&lie),
        shown(&honest)
    );
    let detail = &failures(&done)[0].2;
    assert!(detail.starts_with("pass 1, step") && detail.contains(&expected), "{detail}");
}

#[test]
fn hashed_logits_hide_no_lie() {
    let honest = Making { logits: LogitsMode::Hash, ..Making::default() }.make();
    let lies: &[Lie] = &[
        (
            "one bit of a digest",
            |m| {
                m.contents[0][32] ^= 1;
                m.commit();
            },
            Execution,
            Mismatch,
            &["pass 1, step", "lm_head", "digest is"],
        ),
        (
            "vocab",
            |m| {
                m.statement.logits.vocab = u64::MAX;
                m.commit();
            },
            Environment,
            Mismatch,
            &["rows of logits are 18446744073709551615 bf16"],
        ),
        (
            "dtype",
            |m| {
                m.statement.logits.dtype = Dtype::F32;
                m.commit();
            },
            Environment,
            Mismatch,
            &["rows of logits are 1536 f32"],
        ),
        // The next pass takes the token, so its logits differ.
        (
            "first token",
            |m| m.statement.tokens_out[0] ^= 1,
            Execution,
            Mismatch,
            &["pass 1, step", "lm_head", "digest is"],
        ),
        (
            "last token",
            |m| m.statement.tokens_out[2] ^= 1,
            Sampling,
            Mismatch,
            &["token 2 is", "in the transcript, but the largest logit is"],
        ),
    ];
    find_out(&honest, lies);
}

#[test]
fn a_trace_of_layers_hides_no_lie() {
    let honest = Making { trace: TraceMode::Layers, ..Making::default() }.make();
    // Embedding and two layers a pass.
    let lies: &[Lie] = &[(
        "the second layer of the second pass",
        |m| {
            m.contents[1][32 * 5] ^= 0x80;
            m.commit();
        },
        Execution,
        Mismatch,
        &["pass 1, layer 1, step", "layers.1.mlp.residual", "digest is"],
    )];
    find_out(&honest, lies);
}

#[test]
fn a_text_cut_off_before_its_end_is_found_out() {
    // Everything consistent, but the text ends where the rule would go on.
    let long = Making { max_new_tokens: 4, ..Making::default() }.make();
    let mut cut = Making::default().make();
    cut.statement.sampling = long.statement.sampling;
    let details = failures(&check(cut.seal().as_bytes(), &trust(), None));
    assert_eq!((details[0].0, details[0].1), (Sampling, Mismatch));
    assert!(details[0].2.contains("after 3 tokens the rule says \"goes on\""), "{details:?}");
}

#[test]
fn a_limit_of_no_tokens_is_found_out() {
    // One token, so that the text also ends by length under the false limit.
    let mut lie = Making { max_new_tokens: 1, ..Making::default() }.make();
    lie.statement.sampling.max_new_tokens = 0;
    let details = failures(&check(lie.seal().as_bytes(), &trust(), None));
    assert_eq!((details[0].0, details[0].1), (Sampling, Mismatch), "{details:?}");
    assert!(details[0].2.contains("at most 0 new tokens"), "{details:?}");
}

#[test]
fn another_model_shape_has_another_plan() {
    // The plan digest binds what the model computes, not only the tokens.
    let mut config = model().config().clone();
    config.num_hidden_layers = 1;
    let pass = attest::plan::Pass::alone(0, 0, 2);
    let plan = qwen3::forward(&config, attest::plan::Contract::Native, pass).unwrap();
    let mut lie = Making::default().make();
    lie.statement.passes[0].plan_digest = plan.digest();
    let details = failures(&check(lie.seal().as_bytes(), &trust(), None));
    assert_eq!((details[0].0, details[0].1), (Environment, Mismatch), "{details:?}");
}

/// A claim: what is done, the field under which the report repeats it, its value.
type Claim = (fn(&mut Made), &'static str, &'static str);

#[test]
fn what_cannot_be_checked_is_reported_as_the_signers_word() {
    let claims: &[Claim] = &[
        (|m| m.statement.tool.name = "\u{1b}[2Jother".into(), "tool", "\u{1b}[2Jother 0.1.0"),
        (|m| m.statement.tool.version = "9".into(), "tool", "attest 9"),
        (|m| m.statement.model.name = "Qwen/Qwen3-4B".into(), "model.name", "Qwen/Qwen3-4B"),
        (
            |m| m.statement.model.oms_root = Some(Digest([0; 32])),
            "model.oms_root",
            "0000000000000000000000000000000000000000000000000000000000000000",
        ),
        (|_| {}, "environment.engine", "cuda"),
        (|_| {}, "environment.gpu.name", "NVIDIA H200"),
        (|m| gpu(m).driver = "0".into(), "environment.gpu.driver", "0"),
        (|m| gpu(m).cuda_driver = "99.0".into(), "environment.gpu.cuda_driver", "99.0"),
        (|m| gpu(m).cuda_runtime = Some("1".into()), "environment.gpu.cuda_runtime", "1"),
        (|_| {}, "environment.gpu.cublaslt", "130100"),
        (|_| {}, "environment.gpu.nvrtc", "13.0"),
        (|_| {}, "environment.gpu.kernels", "7 sources, compiled with the stated options"),
        // Attributes that place outputs on the chip decide no bit.
        (|m| realgorithm(m, |a| a.tile = 1), "dispatch", "algorithms of "),
        (|m| m.statement.claimed_time += 3600, "claimed_time", "2026-11-30T14:35:00Z"),
        (|m| m.statement.nonce = None, "", ""),
        (|m| m.statement.nonce = Some(vec![1, 2]), "nonce", "0102"),
        (
            |m| m.statement.extensions.push(Extension { key: 64, value: 1.into() }),
            "unknown keys",
            "64",
        ),
    ];
    let honest = pretended(&Making::default());
    for (claim, field, value) in claims {
        let mut made = honest.clone();
        claim(&mut made);
        let done = check(made.seal().as_bytes(), &trust(), None);
        assert_verified(&done, field);
        let said = done.claims.iter().any(|c| c.field == *field && c.value.starts_with(value));
        assert!(said || field.is_empty(), "{field} = {value:?} is not in {:?}", done.claims);
    }
}

#[test]
fn trust_depends_on_time_model_role_and_revocation() {
    let made = Making::default().make();
    let digest = made.statement.model.digest;
    let entry = |text: &str| TrustStore::from_toml(text).unwrap();
    let star = trust_text("\"*\"");
    type Change = fn(&mut Made);
    let cases: &[(&str, String, Change, Option<&str>)] = &[
        ("the first second", star.clone(), |m| m.statement.claimed_time = 1_795_996_800, None),
        (
            "a second early",
            star.clone(),
            |m| m.statement.claimed_time = 1_795_996_799,
            Some("2026-11-29T23:59:59Z is before the window"),
        ),
        ("the last second", star.clone(), |m| m.statement.claimed_time = 1_796_083_199, None),
        (
            "a second late",
            star.clone(),
            |m| m.statement.claimed_time = 1_796_083_200,
            Some("after the window"),
        ),
        (
            "the end of time",
            star.clone(),
            |m| m.statement.claimed_time = u64::MAX,
            Some("after the window"),
        ),
        ("by name", trust_text("[\"model\"]"), |_| {}, None),
        (
            "by another name",
            trust_text("[\"model\"]"),
            |m| m.statement.model.name = "m".into(),
            Some("is not trusted for model \"m\""),
        ),
        (
            "by digest",
            trust_text(&format!("[\"{digest}\"]")),
            |m| m.statement.model.name = "anything".into(),
            None,
        ),
        (
            "as an auditor",
            star.replace("prover", "auditor"),
            |_| {},
            Some("trusted as auditor, not as prover"),
        ),
        (
            "revoked later",
            format!("{star}revoked_at = 2027-01-01\nreason = \"stolen\"\n"),
            |_| {},
            Some("was revoked at 2027-01-01T00:00:00Z: stolen"),
        ),
    ];
    for (name, text, change, refusal) in cases {
        let mut made = made.clone();
        change(&mut made);
        let done = check(made.seal().as_bytes(), &entry(text), None);
        match refusal {
            None => assert_verified(&done, name),
            Some(words) => {
                let details = failures(&done);
                assert_eq!(done.report.verdict(), Verdict::Untrusted, "{name}");
                assert_eq!(details[0].0, Subject::Trust, "{name}");
                assert!(details[0].2.contains(words), "{name}: {details:?}");
            }
        }
    }
}

#[test]
fn an_old_transcript_does_not_answer_a_new_challenge() {
    let file = Making::default().make().seal();
    assert_verified(&check(file.as_bytes(), &trust(), Some(vec![0xab; 16])), "the nonce");
    for nonce in [vec![], vec![0xab; 15], vec![0xac; 16]] {
        let done = check(file.as_bytes(), &trust(), Some(nonce));
        assert_eq!(done.report.verdict(), Verdict::Untrusted);
        let details = failures(&done);
        assert_eq!(details[0].0, Subject::Freshness);
        assert!(details[0].2.contains("abababab"), "{details:?}");
    }
    let mut without = Making::default().make();
    without.statement.nonce = None;
    let done = check(without.seal().as_bytes(), &trust(), Some(vec![0xab; 16]));
    assert_eq!(done.report.verdict(), Verdict::Untrusted);
    assert!(failures(&done)[0].2.contains("the transcript has none"));
    assert_eq!(support::TIME, without.statement.claimed_time);
}
