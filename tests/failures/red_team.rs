//! The attacks of `spec/red-team.md`, each on a transcript that is honest before: which
//! check finds it, with which sentence.

use std::fs;

use attest::transcript::Transcript;
use attest::transcript::cose::{Envelope, REPORT};
use attest::transcript::statement::{LogitsMode, TraceMode};

use crate::command::Home;
use crate::folder::{home, ran, run, tensors, write};
use crate::judged;
use crate::support::{Made, Making, key, other_key};

/// With the digests of both layers and values of the logits.
fn traced() -> Made {
    Making { trace: TraceMode::Layers, ..Making::default() }.make()
}

/// The same of another prompt, of as many tokens.
fn other() -> Made {
    let made = Making { prompt: "Call us", trace: TraceMode::Layers, ..Making::default() }.make();
    assert_eq!(made.statement.tokens_in.len(), traced().statement.tokens_in.len());
    made
}

/// Item 0 and the sections, each with its head.
fn items(made: &Made) -> [Vec<u8>; 3] {
    let sealed = made.seal();
    let file = sealed.as_bytes();
    let start = Envelope::open(file).unwrap().end;
    let trace = sealed.section("trace").unwrap().len();
    let head = if trace < 256 { 2 } else { 3 };
    let (item, sections) = file.split_at(start);
    let (logits, trace) = sections.split_at(sections.len() - trace - head);
    [item.to_vec(), logits.to_vec(), trace.to_vec()]
}

/// What the holder of the trusted key does to a statement, the row that fails, words of it.
type Signed = (&'static str, fn(&mut Made), &'static str, &'static [&'static str]);

const SIGNED: &[Signed] = &[
    (
        "a token exchanged for another",
        |made| made.statement.tokens_out[1] ^= 1,
        "sampling",
        &["token 1 is", "the largest recorded logit"],
    ),
    (
        "a token inserted in the answer",
        |made| made.statement.tokens_out.insert(1, 5),
        "environment",
        &["3 passes where 4 tokens were generated"],
    ),
    (
        "a token inserted in the prompt",
        |made| made.statement.tokens_in.insert(1, 5),
        "prompt",
        &["the prompt gives", "token 1 is"],
    ),
    (
        "the prompt rewritten",
        |made| made.statement.prompt = "Call us".into(),
        "prompt",
        &["the prompt gives"],
    ),
    (
        "the prompt and its ids rewritten",
        |made| {
            let other = other().statement;
            (made.statement.prompt, made.statement.tokens_in) = (other.prompt, other.tokens_in);
        },
        "execution",
        &["FAILED", "pass 0, step 0 embed_tokens"],
    ),
    (
        "the outputs of two layers exchanged",
        |made| {
            // Of the first pass: embedding, layer 0, layer 1.
            made.contents[1][32..96].rotate_left(32);
            made.commit();
        },
        "execution",
        &["FAILED", "pass 0, layer 0", "digest is"],
    ),
    (
        "a row of logits out of another transcript",
        |made| {
            let row = made.contents[0].len() / 3;
            made.contents[0][..row].copy_from_slice(&other().contents[0][..row]);
            made.statement.tokens_out[0] = other().statement.tokens_out[0];
            made.commit();
        },
        "execution",
        &["FAILED", "pass 1, step 0 embed_tokens"],
    ),
    (
        "every row of logits moved by one, with the tokens",
        |made| {
            let row = made.contents[0].len() / 3;
            made.contents[0].rotate_left(row);
            made.statement.tokens_out.rotate_left(1);
            made.commit();
        },
        "execution",
        &["FAILED", "pass 1, step 0 embed_tokens"],
    ),
];

#[test]
fn what_a_trusted_signer_changes_is_a_mismatch() {
    let home = Home::configured();
    let honest = traced();
    home.write("t.cbor", honest.seal().as_bytes());
    judged(&home, &[], 0, "execution", &[" ok "]);
    for (attack, change, row, words) in SIGNED {
        println!("{attack}");
        let mut made = honest.clone();
        change(&mut made);
        home.write("t.cbor", made.seal().as_bytes());
        judged(&home, &[], 1, row, words);
    }
}

/// Layers exchanged in the model that ran, under the manifest of the honest one.
#[test]
fn exchanged_layers_of_the_model_are_found() {
    let home = home();
    let all = tensors();
    let exchanged = |name: &String| {
        let other = match name {
            _ if name.contains("layers.0.") => name.replace("layers.0.", "layers.1."),
            _ => name.replace("layers.1.", "layers.0."),
        };
        (name.clone(), all[&other].clone())
    };
    write(&home.path("model/model.safetensors"), &all.keys().map(exchanged).collect());
    let ended = run(&home, "p.txt", &[]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    fs::copy(home.path("o.cbor"), home.path("t.cbor")).unwrap();
    judged(&home, &[], 5, "model ", &["model.safetensors has "]);

    let mut made = ran(&home);
    made.statement.model = traced().statement.model;
    home.write("t.cbor", made.seal().as_bytes());
    judged(&home, &[], 1, "execution", &["FAILED", "pass 0, step"]);
}

#[test]
fn parts_that_do_not_belong_together_are_malformed() {
    let [item, logits, trace] = items(&traced());
    let [item_b, logits_b, trace_b] = items(&other());
    // (attack, items, words)
    let cases: [(&str, Vec<&[u8]>, &str); 8] = [
        ("sections of another", vec![&item, &logits_b, &trace_b], "section logits does not match"),
        ("item 0 of another", vec![&item_b, &logits, &trace], "section logits does not match"),
        ("one section of another", vec![&item, &logits, &trace_b], "section trace does not match"),
        ("exchanged", vec![&item, &trace, &logits], "section logits has"),
        ("no trace", vec![&item, &logits], "section 1 (trace) is missing"),
        ("no sections", vec![&item], "section 0 (logits) is missing"),
        ("cut", vec![&item, &logits, &trace[..trace.len() - 1]], "announces more"),
        ("twice", vec![&item, &logits, &trace, &trace], "bytes after the last section"),
    ];
    let home = Home::configured();
    for (attack, items, words) in cases {
        println!("{attack}");
        home.write("t.cbor", items.concat());
        judged(&home, &[], 4, "encoding", &[words]);
    }
}

/// A signer who keeps the root and moves what it commits to.
#[test]
fn leaves_at_other_places_than_the_root_says_are_malformed() {
    let mut made = traced();
    let row = made.contents[0].len() / 3;
    made.contents[0].rotate_left(row);
    let sealed = traced().seal();
    let root = made.statement.logits.root;
    made.commit();
    assert_ne!(made.statement.logits.root, root);
    made.statement.logits.root = root;
    // Sealing reads back what it writes, so this one is put together by hand.
    let payload = made.statement.to_bytes().unwrap();
    let mut file = Envelope::seal(&payload, &key());
    file.extend(&sealed.as_bytes()[Envelope::open(sealed.as_bytes()).unwrap().end..]);
    let at = file.len() - sealed.section("trace").unwrap().len() - 2 - 3 * row;
    let at = if sealed.section("trace").unwrap().len() < 256 { at } else { at - 1 };
    file[at..at + 3 * row].copy_from_slice(&made.contents[0]);
    let home = Home::configured();
    home.write("t.cbor", file);
    judged(&home, &[], 4, "encoding", &["section logits does not match the statement: root"]);
}

#[test]
fn an_old_transcript_is_no_answer_to_a_new_nonce() {
    let home = Home::configured();
    home.write("t.cbor", traced().seal().as_bytes());
    let asked = "abababababababababababababababab";
    judged(&home, &["--nonce", asked], 0, "freshness", &[" ok "]);
    judged(&home, &["--nonce", "00ff00ff"], 3, "freshness", &["FAILED", asked]);
    judged(&home, &[], 0, "freshness", &["no nonce was asked for: a replay would pass"]);
}

#[test]
fn no_other_key_and_no_other_use_of_a_key_signs_a_transcript() {
    let made = traced();
    let stranger = Transcript::seal(&made.statement, &made.contents, &other_key()).unwrap();
    let mut borrowed = stranger.as_bytes().to_vec();
    let (own, trusted) = (other_key().public().id().0, key().public().id().0);
    let at = borrowed.windows(8).position(|window| window == own).unwrap();
    borrowed[at..at + 8].copy_from_slice(&trusted);
    let sealed = made.seal();
    let payload = Envelope::open(sealed.as_bytes()).unwrap().payload;
    let sections = &sealed.as_bytes()[Envelope::open(sealed.as_bytes()).unwrap().end..];
    let report = Envelope::seal_as(REPORT, &sealed.as_bytes()[payload], &key());
    let report = [&report[..], sections].concat();
    // (attack, file, exit code, row, words)
    let cases = [
        (
            "signed again",
            stranger.as_bytes(),
            3,
            "signature",
            own.map(|b| format!("{b:02x}")).concat(),
        ),
        ("a borrowed key id", &borrowed, 3, "signature", "is not valid".into()),
        ("a signature on a report", &report, 4, "encoding", "the content type must be".into()),
    ];
    let home = Home::configured();
    for (attack, file, exit, row, words) in cases {
        println!("{attack}");
        home.write("t.cbor", file);
        judged(&home, &[], exit, row, &[&words]);
    }
    assert_eq!(made.statement.logits.mode, LogitsMode::Full);
}
