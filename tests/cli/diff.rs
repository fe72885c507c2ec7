//! `attest diff`: two transcripts compared claim by claim.

use std::path::PathBuf;

use attest::num::Digest;
use attest::transcript::Transcript;
use attest::transcript::diff::fields::NOT_COUNTED;
use attest::transcript::statement::{Extension, LogitsMode, TraceMode};
use serde_json::{Value, json};

use crate::support::{Made, Making, other_key, tiny};
use crate::{Ended, Home, end, fails};

fn traced() -> Made {
    Making { trace: TraceMode::Steps, ..Making::default() }.make()
}

/// Compares two sealed files.
fn diff(a: &Made, b: &Made, json: bool) -> Ended {
    let home = Home::empty();
    home.write("a.cbor", a.seal().as_bytes());
    home.write("b.cbor", b.seal().as_bytes());
    let args = ["diff", "a.cbor", "b.cbor", "--json"];
    end(&mut home.attest(&args[..if json { 4 } else { 3 }]))
}

/// The fields that differ and count, with their places, then those that do not.
fn fields(json: &Value) -> (Vec<String>, Vec<String>) {
    let fields = json["fields"].as_array().unwrap().iter();
    let (counted, not): (Vec<_>, Vec<_>) = fields.partition(|field| field["counts"] == true);
    let name = |field: &&Value| field["field"].as_str().unwrap().to_owned();
    (counted.iter().map(name).collect(), not.iter().map(name).collect())
}

#[test]
fn the_same_run_twice_is_the_same() {
    let ended = diff(&traced(), &traced(), false);
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("NOT CHECKED: no signature"), "{lines:?}");
    assert_eq!(
        lines[3..],
        [
            "logits       none of 3 rows differs",
            "trace        none of 117 outputs differs",
            "THE SAME"
        ]
    );
}

#[test]
fn what_makes_a_run_another_run_is_listed_and_does_not_count() {
    let a = traced();
    let mut b = a.clone();
    b.statement.tool.version = "9".into();
    b.statement.model.oms_root = Some(Digest([0; 32]));
    b.statement.claimed_time += 1;
    b.statement.nonce = None;
    b.statement.extensions.push(Extension { key: 64, value: 1.into() });
    let home = Home::empty();
    let other = Transcript::seal(&b.statement, &b.contents, &other_key()).unwrap();
    home.write("a.cbor", a.seal().as_bytes());
    home.write("b.cbor", other.as_bytes());
    let json = end(&mut home.attest(&["diff", "a.cbor", "b.cbor", "--json"]));
    assert_eq!(json.exit, 0, "{}", json.stdout);
    let json = json.json();
    let expected =
        ["tool", "model.oms_root", "claimed_time", "nonce", "extensions", "key_id", "signature"];
    assert_eq!(fields(&json), (vec![], expected.map(str::to_owned).to_vec()));
    assert_eq!((&json["different"], &json["checked"]), (&json!(false), &json!(false)));
    assert_eq!(json["fields"][3]["b"], "none");
    // The help says which.
    let help = end(&mut home.attest(&["diff", "--help"])).stdout;
    for field in NOT_COUNTED {
        let last = field.rsplit('.').next().unwrap();
        assert!(help.contains(last), "{field} is not in {help}");
    }
    let text = end(&mut home.attest(&["diff", "a.cbor", "b.cbor"])).stdout;
    assert!(text.contains("not counted  claimed_time: A 1796045700; B 1796045701"), "{text}");
}

#[test]
fn the_emulator_and_the_gpu_differ_in_where_they_ran_only() {
    let path = |name: &str| tiny().join(name).to_str().unwrap().to_owned();
    let (a, b) = (path("transcript-emulator.cbor"), path("transcript.cbor"));
    let ended = end(&mut Home::empty().attest(&["diff", &a, &b, "--json"]));
    assert_eq!(ended.exit, 1, "{}{}", ended.stdout, ended.stderr);
    let json = ended.json();
    let (counted, not) = fields(&json);
    assert_eq!(counted, ["environment.engine", "environment.gpu", "dispatch.algorithm"]);
    assert!(not.iter().all(|field| NOT_COUNTED.contains(&field.as_str())), "{not:?}");
    assert_eq!(
        json["logits"],
        json!({
            "outcome": "compared", "rows": 96, "differing_rows": 0, "differing_elements": 0,
            "first": null,
        })
    );
    assert_eq!(
        json["trace"],
        json!({ "outcome": "compared", "outputs": 3744, "differing": 0, "first": null })
    );
}

/// The elements of a row of the tiny model.
const VOCAB: usize = 1536;

#[test]
fn a_tampered_copy_is_located() {
    let a = traced();
    let mut b = a.clone();
    // A bit of row 1, element 700, two of row 2; and of pass 1 the output of step 20.
    for at in [2 * (VOCAB + 700), 4 * VOCAB, 4 * VOCAB + 2] {
        b.contents[0][at] ^= 1;
    }
    b.contents[1][32 * (39 + 20)] ^= 0x80;
    b.commit();
    let ended = diff(&a, &b, false);
    assert_eq!(ended.exit, 1);
    let text = &ended.stdout;
    let row = &a.contents[0][2 * (VOCAB + 700)..][..2];
    let bits = u16::from_le_bytes([row[0], row[1]]);
    // A bf16 is the upper half of a binary32.
    let shown = |bits: u16| format!("{bits:04x} ({})", f32::from_bits(u32::from(bits) << 16));
    let expected = format!(
        "logits       2 of 3 rows differ, 3 elements; first row 1 (pass 1, position {}): element \
         700 is {} in A, {} in B, 1 of 1536 differ\n",
        a.statement.tokens_in.len(),
        shown(bits),
        shown(bits ^ 1)
    );
    assert!(text.contains(&expected), "{expected}{text}");
    let expected = "trace        1 of 117 outputs differ; first pass 1, layer 1, step 20 \
                    layers.1.self_attn.q_norm: A ";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("differs      logits.root: A "), "{text}");
    assert!(text.ends_with("DIFFERENT\n"), "{text}");

    // With digests the row is known and the element is not; the roots are of the values.
    let mut hashed = Making { logits: LogitsMode::Hash, ..Making::default() }.make();
    hashed.contents[0][32] ^= 1;
    hashed.commit();
    let json = diff(&a, &hashed, true).json();
    assert_eq!(json["logits"]["first"]["row"], 1);
    assert_eq!(json["logits"]["first"]["element"], Value::Null);
    assert_eq!(json["logits"]["differing_elements"], Value::Null);
    assert_eq!(json["trace"]["reason"], "the mode is steps in A, none in B");
}

#[test]
fn a_trace_of_layers_names_the_layer() {
    let a = Making { trace: TraceMode::Layers, ..Making::default() }.make();
    // Embedding and two layers a pass.
    for (leaf, pass, layer) in [(3, 1, Value::Null), (5, 1, json!(1)), (7, 2, json!(0))] {
        let mut b = a.clone();
        b.contents[1][32 * leaf] ^= 1;
        b.commit();
        let json = diff(&a, &b, true).json();
        assert_eq!(json["trace"]["first"]["pass"], pass, "{leaf}");
        assert_eq!(json["trace"]["first"]["layer"], layer, "{leaf}");
    }
}

#[test]
fn another_prompt_differs_from_its_first_byte_on() {
    let (a, b) = (Making::default(), Making { prompt: "Call us", ..Making::default() });
    let ended = diff(&a.make(), &b.make(), true);
    assert_eq!(ended.exit, 1);
    let json = ended.json();
    let of = |name: &str| {
        let fields = json["fields"].as_array().unwrap().iter();
        fields.into_iter().find(|field| field["field"] == name).unwrap().clone()
    };
    let prompt = of("prompt");
    assert_eq!(prompt["at"], "byte 5 of 7 and 7");
    assert_eq!((&prompt["a"], &prompt["b"]), (&json!("6d, \"me\""), &json!("75, \"us\"")));
    let ids = |made: &Made, at: usize| {
        let ids: Vec<String> = made.statement.tokens_in[at..].iter().map(u32::to_string).collect();
        ids.join(", ")
    };
    let (a, b) = (a.make(), b.make());
    let pairs = a.statement.tokens_in.iter().zip(&b.statement.tokens_in);
    let at = pairs.clone().position(|(a, b)| a != b).unwrap();
    let tokens = of("tokens_in");
    assert!(tokens["at"].as_str().unwrap().starts_with(&format!("token {at} of ")), "{tokens}");
    assert_eq!((&tokens["a"], &tokens["b"]), (&json!(ids(&a, at)), &json!(ids(&b, at))));
}

#[test]
fn another_stack_is_named_with_its_products() {
    let a = Making::default().make();
    let mut b = a.clone();
    b.statement.stack = "native-stock".into();
    let row = &mut b.statement.dispatch[0];
    let before = format!("m={} n={} k={} single_walk", row.m, row.n, row.k);
    row.recipe = "split_k_workspace_f32(slices=2,k_tile=64)".into();
    b.statement.dispatch.sort();
    b.statement.passes[1].plan_digest = Digest([1; 32]);
    let ended = diff(&a, &b, false);
    assert_eq!(ended.exit, 1);
    let text = ended.stdout;
    for line in [
        "differs      stack: A native; B native-stock\n".to_owned(),
        format!("differs      dispatch, 1 rows in A only, 1 in B only, first: A linear {before}; "),
        format!(
            "differs      passes.plan_digest, pass 1: A {}; B {}\n",
            a.statement.passes[1].plan_digest,
            Digest([1; 32])
        ),
    ] {
        assert!(text.contains(&line), "{line}{text}");
    }
}

#[test]
fn every_length_is_compared_as_far_as_both_go() {
    let (short, long) = (Making::default(), Making { max_new_tokens: 4, ..Making::default() });
    let ended = diff(&short.make(), &long.make(), true);
    assert_eq!(ended.exit, 1);
    let json = ended.json();
    assert_eq!(json["logits"]["rows"], 3);
    assert_eq!(json["logits"]["differing_rows"], 0);
    let (counted, _) = fields(&json);
    for field in ["sampling.max_new_tokens", "tokens_out", "passes.count", "logits.count"] {
        assert!(counted.iter().any(|found| found == field), "{field}: {counted:?}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let home = Home::empty();
    let made = Making::default().make().seal();
    home.write("a.cbor", made.as_bytes());
    home.write("cut.cbor", &made.as_bytes()[1..]);
    let missing = PathBuf::from("missing.cbor");
    fails(&mut home.attest(&["diff", "a.cbor", missing.to_str().unwrap()]), 2, &["missing.cbor"]);
    fails(&mut home.attest(&["diff", "a.cbor", "cut.cbor"]), 4, &["cut.cbor: byte 0", "tag 18"]);
    fails(&mut home.attest(&["diff", "-", "-"]), 2, &["standard input"]);
    let ended = end(home.attest(&["diff", "-", "a.cbor"]).write_stdin(made.as_bytes()));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
}
