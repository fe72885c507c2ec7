//! `attest run` with several prompts: a transcript of each.

use std::fs;

use crate::{Home, end, fails, text, tiny_model};

const PROMPT: &str = "Call me";

/// Arguments of a short run of several prompts.
fn run_several<'a>(model: &'a str, prompts: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", "--model", model, "--max-new-tokens", "3", "--engine", "emulator"];
    prompts.iter().for_each(|prompt| args.extend(["--prompt", prompt]));
    args.extend(["--claimed-time", "1796045700"]);
    args.extend(more);
    args
}

#[test]
fn several_prompts_give_a_transcript_each() {
    let home = Home::configured();
    home.write("a.txt", PROMPT);
    home.write("b.txt", "It is not down in any map; true places never are.");
    let model = tiny_model();
    let model = text(&model);
    let ended =
        end(&mut home.attest(&run_several(model, &["a.txt", "b.txt", "a.txt"], &["--json"])));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let json = ended.json();
    let list = json["transcripts"].as_array().unwrap();
    assert_eq!(json.as_object().unwrap().len(), 1);
    assert_eq!(list.len(), 3);
    for (index, prompt) in ["a.txt", "b.txt", "a.txt"].into_iter().enumerate() {
        let name = format!("transcript-{}.cbor", index + 1);
        assert_eq!(list[index]["transcript_file"], name);
        assert_eq!(list[index]["prompt_file"], prompt);
        let verified = end(&mut home.attest(&["verify", &name, "--model", model, "--json"]));
        assert_eq!(verified.exit, 0, "{}", verified.stdout);
        let verified = verified.json();
        assert_eq!(verified["transcript"], list[index]["transcript"]);
        assert_eq!(verified["text"], list[index]["text"]);
    }
    assert_eq!(list[0]["transcript"], list[2]["transcript"], "equal prompts, equal statements");
    assert!(!home.path("transcript.cbor").exists());

    // Alone it generates the same; the transcript says that it ran alone.
    let alone = end(&mut home.attest(&run_several(model, &["a.txt"], &["--json", "--out", "t"])));
    let alone = alone.json();
    assert_eq!(alone["text"], list[0]["text"]);
    assert_ne!(alone["transcript"], list[0]["transcript"]);
    assert_eq!(alone["transcript_file"], "t");
    assert_eq!(alone.get("prompt_file"), None, "the object of one prompt is as ever");

    let ended = end(&mut home.attest(&run_several(model, &["a.txt", "b.txt"], &["--overwrite"])));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    for line in
        ["prompt a.txt:", "written to transcript-1.cbor (", "prompt b.txt:", "transcript-2.cbor"]
    {
        assert!(ended.stdout.contains(line), "{line:?} is not in {:?}", ended.stdout);
    }
    let shown = end(&mut home.attest(&["inspect", "transcript-2.cbor"])).stdout;
    assert!(shown.contains("3, 3 of them launched with passes of other sequences"), "{shown}");
    let shown = end(&mut home.attest(&["inspect", "transcript-2.cbor", "--json"])).json();
    assert_eq!(shown["passes"][1]["batch"], serde_json::json!({ "passes": 2, "rows": 2 }));
}

#[test]
fn of_several_prompts_the_one_that_cannot_be_used_is_named() {
    let home = Home::configured();
    home.write("a.txt", PROMPT);
    home.write("empty.txt", "");
    let model = tiny_model();
    let model = text(&model);
    for (prompts, words) in [
        (["a.txt", "empty.txt"], "empty.txt: the prompt has no token"),
        (["empty.txt", "a.txt"], "empty.txt: the prompt has no token"),
        (["a.txt", "missing.txt"], "missing.txt: No such file"),
    ] {
        fails(&mut home.attest(&run_several(model, &prompts, &[])), 2, &[words]);
    }
    // A place for each, before anything is computed.
    home.write("transcript-2.cbor", "evidence");
    let several = |more: &[&'static str]| {
        let prompts = ["a.txt", "a.txt"];
        home.attest(&run_several(model, &prompts, more))
    };
    fails(&mut several(&[]), 2, &["transcript-2.cbor exists; nothing was written"]);
    assert_eq!(fs::read(home.path("transcript-2.cbor")).unwrap(), b"evidence");
    assert!(!home.path("transcript-1.cbor").exists(), "and none of the others");
    fails(&mut several(&["--out", "nowhere/t.cbor"]), 2, &["nowhere/t-1.cbor", "is not there"]);
    // A transcript in place of a prompt.
    fs::rename(home.path("a.txt"), home.path("p-2.txt")).unwrap();
    let more = ["--overwrite", "--out", "p.txt"];
    let args = run_several(model, &["p-2.txt", "p-2.txt"], &more);
    fails(&mut home.attest(&args), 2, &["p-2.txt is read by this run"]);
    assert_eq!(fs::read_to_string(home.path("p-2.txt")).unwrap(), PROMPT);
    let ended = end(&mut home.attest(&["run", "--model", model]));
    assert_eq!(ended.exit, 2, "a prompt is required");
}
