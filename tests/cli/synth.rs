//! `attest model synth`: folders that are refused, and one that is made and run.

use std::fs;

use crate::{Home, end, fails, text, tiny_model};

const MAKE: [&str; 6] = ["model", "synth", "--config", "qwen3-test", "--seed", "1"];

fn make<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [MAKE.as_slice(), more].concat()
}

#[test]
fn makes_a_model_that_runs_under_its_folders_name() {
    let home = Home::configured();
    let tiny = tiny_model();
    let made = end(&mut home.attest(&make(&["--json", "--tokenizer", text(&tiny)])));
    assert_eq!((made.exit, made.stderr.as_str()), (0, ""));
    let json = made.json();
    assert_eq!(json["name"], "qwen3-test-synth-1");
    assert_eq!(json["folder"], "qwen3-test-synth-1");
    assert_eq!(json["files"].as_array().unwrap().len(), 6);
    for file in json["files"].as_array().unwrap() {
        let name = file["path"].as_str().unwrap();
        let bytes = fs::read(home.path("qwen3-test-synth-1").join(name)).unwrap();
        assert_eq!(file["len_bytes"], bytes.len());
        assert_eq!(file["sha256"], attest::num::sha256(&[&bytes]).to_string(), "{name}");
    }
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        let copied = fs::read(home.path("qwen3-test-synth-1").join(name)).unwrap();
        assert_eq!(copied, fs::read(tiny.join(name)).unwrap());
    }

    home.write("p.txt", "Call me");
    let run = ["run", "--model", "qwen3-test-synth-1", "--prompt", "p.txt", "--out", "t.cbor"];
    let more = ["--engine", "emulator", "--max-new-tokens", "2"];
    let ended = end(&mut home.attest(&[run.as_slice(), &more].concat()));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let inspected = end(&mut home.attest(&["inspect", "--json", "t.cbor"])).json();
    assert_eq!(inspected["model"]["name"], "qwen3-test-synth-1");
}

#[test]
fn fills_an_empty_folder_and_says_what_is_missing() {
    let home = Home::empty();
    fs::create_dir(home.path("m")).unwrap();
    let made = end(&mut home.attest(&make(&["--layers", "1", "--out", "m"])));
    assert_eq!(made.exit, 0, "{}", made.stderr);
    assert!(made.stderr.contains("without a tokenizer.json"), "{}", made.stderr);
    let first = made.stdout.lines().next().unwrap();
    assert_eq!(first, "qwen3-test-layers-1-synth-1 in m");
    let config = fs::read_to_string(home.path("m/config.json")).unwrap();
    assert!(config.contains("\"num_hidden_layers\": 1,"), "{config}");
}

#[test]
fn refuses_what_it_cannot_write_or_use_and_leaves_nothing() {
    let home = Home::empty();
    fs::create_dir(home.path("full")).unwrap();
    home.write("full/kept", "kept");
    home.write("file", "kept");
    fs::create_dir(home.path("no-tokenizer")).unwrap();
    fs::create_dir(home.path("large-tokenizer")).unwrap();
    let vocabulary: String = (0..1537).map(|id| format!(",\"t{id}\":{id}")).collect();
    let tokenizer = format!(
        r#"{{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
        "pre_tokenizer":null,"post_processor":null,"decoder":null,
        "model":{{"type":"WordLevel","vocab":{{{}}},"unk_token":"t0"}}}}"#,
        &vocabulary[1..]
    );
    home.write("large-tokenizer/tokenizer.json", tokenizer);
    let before = names(&home);
    // (arguments, exit code, words)
    let cases: [(&[&str], i32, &[&str]); 6] = [
        (&["--out", "full"], 2, &["full exists and is not empty; nothing was written"]),
        (&["--out", "file"], 2, &["file exists and is no folder; nothing was written"]),
        (&["--out", "absent/m"], 2, &["absent/", "is not there"]),
        (&["--out", ".."], 2, &[".. names no folder"]),
        (&["--tokenizer", "no-tokenizer"], 2, &["no-tokenizer/tokenizer.json", "No such file"]),
        (
            &["--tokenizer", "large-tokenizer"],
            4,
            &["tokenizer.json: token \"t1536\" has id 1536, vocab_size is 1536"],
        ),
    ];
    for (more, exit, words) in cases {
        fails(&mut home.attest(&make(more)), exit, words);
        assert_eq!(names(&home), before, "{more:?}");
    }
    assert_eq!(fs::read(home.path("full/kept")).unwrap(), b"kept");
    fails(&mut home.attest(&make(&["--layers", "1025"])), 5, &["num_hidden_layers is 1025"]);
    assert_eq!(names(&home), before);
}

#[test]
fn names_the_shapes_there_are() {
    let home = Home::empty();
    let args = ["model", "synth", "--config", "qwen3-5b", "--seed", "1"];
    let ended = end(&mut home.attest(&args));
    assert_eq!(ended.exit, 2);
    for shape in ["qwen3-0.6b", "qwen3-1.7b", "qwen3-4b", "qwen3-8b", "qwen3-test"] {
        assert!(ended.stderr.contains(shape), "{}", ended.stderr);
    }
}

fn names(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.path("")).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
