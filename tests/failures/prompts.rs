//! Prompts and tokenizers: the bytes are kept, the ids decide, and nothing is rewritten.

use std::fs;

use serde_json::Value;

use crate::command::{Home, end, fails};
use crate::folder::{home, run};
use crate::judged;
use crate::support::{self, Making};

/// Runs a prompt and verifies it; what the transcript states.
fn stated(home: &Home, prompt: &[u8]) -> Value {
    home.write("prompt.txt", prompt);
    let ran = run(home, "prompt.txt", &[]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let ended = end(&mut home.attest(&["verify", "o.cbor", "--model", "model"]));
    assert_eq!(ended.exit, 0, "{}", ended.stdout);
    let stated = end(&mut home.attest(&["inspect", "o.cbor", "--json"])).json();
    assert_eq!(stated["prompt"]["hex"], hex::encode(prompt), "the bytes as they were given");
    stated
}

/// Text on which tokenizers of other implementations differ.
fn combining_marks() -> String {
    ('\u{300}'..='\u{36f}').flat_map(|mark| ['e', mark]).collect()
}

/// Row 11: whether the prompt gives the stated ids, and whether the stated ids give the
/// stated logits, are two rows of the report.
#[test]
fn ids_that_the_prompt_does_not_give_are_a_row_of_their_own() {
    let home = home();
    stated(&home, combining_marks().as_bytes());
    let mut made = Making { prompt: "e\u{301}t", ..Making::default() }.make();
    made.statement.prompt = "\u{e9}t".into();
    home.write("t.cbor", made.seal().as_bytes());
    let ended = judged(&home, &[], 1, "prompt", &["FAILED", "the prompt gives "]);
    let execution = ended.stdout.lines().find(|line| line.starts_with("execution")).unwrap();
    assert!(execution.contains(" ok ") && execution.contains("0 bits differ"), "{execution}");
}

/// Row 12: with a normaliser, spellings have the same ids and still their own bytes; the
/// normaliser is part of the tokenizer, which the manifest binds.
#[test]
fn no_spelling_of_a_prompt_is_rewritten() {
    let home = home();
    // (two spellings, whether NFC makes one of them)
    let cases = [
        ("e\u{301}", "\u{e9}", true),
        ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}", true),
        ("\u{1fbd}", "\u{2019}", false),
    ];
    let plain: Vec<[Value; 2]> =
        cases.iter().map(|(a, b, _)| [a, b].map(|text| stated(&home, text.as_bytes()))).collect();
    let path = home.path("model/tokenizer.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut tokenizer: Value = serde_json::from_str(&text).unwrap();
    assert!(tokenizer["normalizer"].is_null());
    tokenizer["normalizer"] = serde_json::json!({ "type": "NFC" });
    fs::write(&path, tokenizer.to_string()).unwrap();
    for ((a, b, joined), [plain_a, plain_b]) in cases.iter().zip(plain) {
        assert_ne!(plain_a["tokens_in"], plain_b["tokens_in"], "{a:?}");
        let [with_a, with_b] = [a, b].map(|text| stated(&home, text.as_bytes()));
        assert_eq!(with_a["tokens_in"] == with_b["tokens_in"], *joined, "{a:?}");
        assert_ne!(with_a["model"]["digest"], plain_a["model"]["digest"]);
        assert_eq!(with_b["model"]["digest"], with_a["model"]["digest"]);
    }
}

/// Row 13: no template is rendered, so none can be rendered wrongly.
#[test]
fn a_chat_template_changes_nothing() {
    let home = home();
    let without = run(&home, "p.txt", &[]);
    assert_eq!(without.exit, 0, "{}", without.stderr);
    fs::rename(home.path("o.cbor"), home.path("without.cbor")).unwrap();
    let template = "{% for m in messages[::-1] %}{{ m.content.rstrip('\\n').replace('a', 'b') }}\
                    {% if m.content.startswith('<') %}{{ raise_exception('no') }}{% endif %}{% endfor %}";
    home.write("model/chat_template.jinja", template);
    let config = serde_json::json!({ "chat_template": template }).to_string();
    home.write("model/tokenizer_config.json", config);
    let with = run(&home, "p.txt", &[]);
    assert_eq!(with.exit, 0, "{}", with.stderr);
    // The root of the whole folder differs, and nothing that is checked.
    let ended = end(&mut home.attest(&["diff", "without.cbor", "o.cbor"]));
    assert_eq!(ended.exit, 0, "{}", ended.stdout);
    judged(&home, &["--model", "model"], 0, "prompt", &["7 bytes give the "]);
}

/// Row 37; `prompts_that_cannot_be_used_are_refused_by_reason` has the empty one and
/// the one that is no UTF-8.
#[test]
fn zero_bytes_are_kept_and_a_prompt_beyond_the_context_is_refused() {
    let home = home();
    stated(&home, b"\0Call\0 me\0");
    let long = "a b ".repeat(100_000);
    let tokens = support::model().tokenizer().encode(long.as_bytes()).unwrap().len();
    assert!(tokens >= 200_000, "{tokens}");
    home.write("long.txt", long);
    let sentence =
        format!("long.txt: the prompt's {tokens} tokens do not fit the model's context of 1024");
    let args = ["run", "--model", "model", "--prompt", "long.txt", "--engine", "emulator"];
    fails(&mut home.attest(&args), 2, &[&sentence]);
    assert!(!home.path("transcript.cbor").exists());
}
