//! Challenge, openings, spot check: from `attest run` to a filed report.

use std::fs;

use crate::support::{Making, TIME};
use crate::{Home, end, fails, text, tiny_model};
use attest::transcript::statement::TraceMode;

/// A home where a prover ran the tiny model with a trace of cells.
fn ran() -> Home {
    let home = Home::configured();
    home.write("p.txt", "Call me");
    let (model, time) = (tiny_model(), TIME.to_string());
    let args = ["run", "--model", text(&model), "--prompt", "p.txt", "--engine", "emulator"];
    let more = ["--trace", "cells", "--max-new-tokens", "3", "--claimed-time", &time, "--json"];
    let ended = end(home.attest(&args).args(more));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let json = ended.json();
    assert_eq!(json["kept_file"], "transcript.kept.cbor");
    let length = |name: &str| fs::metadata(home.path(name)).unwrap().len();
    assert_eq!(json["bytes"], length("transcript.cbor"));
    assert_eq!(json["kept_bytes"], length("transcript.kept.cbor"));
    assert!(length("transcript.cbor") < 2048 && length("transcript.kept.cbor") > 20_000);
    home
}

/// The prover's answer to the auditor's challenge of so many cells.
fn opened(home: &Home, cells: &str) {
    let args = ["challenge", "transcript.cbor", "--cells", cells, "--overwrite"];
    assert_eq!(end(&mut home.attest(&args)).exit, 0);
    let model = tiny_model();
    let open = ["open", "transcript.kept.cbor", "--challenge", "challenge.json", "--overwrite"];
    let ended = end(home.attest(&open).args(["--model", text(&model), "--json"]));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert_eq!(
        (&ended.json()["cells"], &ended.json()["of"]),
        (&cells.parse().unwrap(), &10.into())
    );
}

#[test]
fn from_a_run_to_a_filed_report() {
    let home = ran();
    opened(&home, "4");
    let model = tiny_model();
    let verify = ["verify", "opened.cbor", "--challenge", "challenge.json", "--json"];
    let ended = end(home.attest(&verify).args(["--model", text(&model)]));
    assert_eq!(ended.exit, 6, "{}{}", ended.stdout, ended.stderr);
    let report = ended.json();
    assert_eq!((&report["verdict"], &report["exit"]), (&"PARTIAL".into(), &6.into()));
    assert_eq!(report["draw"]["cells"], 4);
    assert!(report["text"].is_string());
    let coverage = report["checks"][9]["detail"].as_str().unwrap();
    assert!(coverage.starts_with("4 of 10 cells (layer, position) were drawn"), "{coverage}");
    assert!(coverage.contains("a probability of only 4 in 10"), "{coverage}");

    home.write("report.json", &ended.stdout);
    let page = ["report", "opened.cbor", "--report", "report.json", "--out", "report.html"];
    assert_eq!(end(&mut home.attest(&page)).exit, 0);
    let page = fs::read_to_string(home.path("report.html")).unwrap();
    for words in ["PARTIAL", "drawn at random", "4 of 10 cells", "position 4", "class=\"open\""] {
        assert!(page.contains(words), "{words} is not on the page");
    }

    let ended = end(home.attest(&verify[..4]).args(["--model", text(&model)]));
    let last = ended.stdout.lines().last();
    assert_eq!((ended.exit, last), (6, Some("PARTIAL")));
    assert!(!ended.stdout.contains("VERIFIED"));
    // The same file and the statement alone, in full.
    for file in ["opened.cbor", "transcript.cbor", "transcript.kept.cbor"] {
        let ended = end(&mut home.attest(&["verify", file, "--model", text(&model)]));
        assert_eq!(ended.exit, 0, "{file}: {}", ended.stdout);
    }
    let ended = end(&mut home.attest(&["inspect", "opened.cbor"]));
    assert!(ended.stdout.contains("withheld     logits, trace"), "{}", ended.stdout);
    assert!(ended.stdout.contains("openings     4 cells drawn from"), "{}", ended.stdout);
}

#[test]
fn all_cells_are_verified() {
    let home = ran();
    opened(&home, "10");
    let model = tiny_model();
    let verify = ["verify", "opened.cbor", "--challenge", "challenge.json"];
    let ended = end(home.attest(&verify).args(["--model", text(&model)]));
    assert_eq!(ended.exit, 0, "{}", ended.stdout);
    assert!(ended.stdout.contains("all 10 cells"), "{}", ended.stdout);
}

#[test]
fn a_challenge_is_for_one_transcript_and_its_own_file() {
    let home = ran();
    opened(&home, "4");
    home.write("other.cbor", Making { trace: TraceMode::Cells, ..Making::default() }.make().whole);
    let model = tiny_model();
    let verify = |file: &'static str, challenge: &'static str| {
        let mut command = home.attest(&["verify", file, "--challenge", challenge, "--model"]);
        command.arg(&model);
        command
    };
    let ended = end(&mut verify("other.cbor", "challenge.json"));
    assert_eq!(ended.exit, 5, "{}", ended.stdout);
    assert!(ended.stdout.contains("the challenge is for transcript"), "{}", ended.stdout);
    let open = ["open", "transcript.kept.cbor", "--challenge", "other.json", "--out", "o.cbor"];
    let challenge = ["challenge", "other.cbor", "--out", "other.json"];
    assert_eq!(end(&mut home.attest(&challenge)).exit, 0);
    let words = ["other.json: the challenge is for transcript"];
    fails(home.attest(&open).args(["--model", text(&model)]), 2, &words);
    let ended = end(&mut verify("transcript.cbor", "challenge.json"));
    assert_eq!(ended.exit, 5, "{}", ended.stdout);
    assert!(ended.stdout.contains("the file has no openings"), "{}", ended.stdout);

    let challenge = fs::read_to_string(home.path("challenge.json")).unwrap();
    for (from, to, words) in [
        ("\"cells\": 4", "\"cells\": 0", "no cell is asked for"),
        ("\"cells\": 4", "\"cells\": -4", "not a challenge"),
        ("\"cells\": 4", "\"cells\": 4, \"more\": 1", "not a challenge"),
        ("\"nonce\": \"", "\"nonce\": \"x", "the nonce is not 1 to 64 bytes in hex"),
        ("\"attest_challenge\": 1", "\"attest_challenge\": 2", "challenge version 2, not 1"),
    ] {
        assert!(challenge.contains(from));
        home.write("bad.json", challenge.replace(from, to));
        fails(&mut verify("opened.cbor", "bad.json"), 2, &["bad.json", words]);
    }
    home.write("bad.json", challenge.replace("\"cells\": 4", "\"cells\": 5"));
    let ended = end(&mut verify("opened.cbor", "bad.json"));
    assert_eq!(ended.exit, 5, "{}", ended.stdout);
    assert!(ended.stdout.contains("the openings answer another challenge"), "{}", ended.stdout);
    let file = fs::read(home.path("opened.cbor")).unwrap();
    let ended = end(verify("-", "challenge.json").write_stdin(file));
    assert_eq!(ended.exit, 6, "through a pipe: {}", ended.stdout);
    let several = ["verify", "opened.cbor", "transcript.cbor", "--challenge", "challenge.json"];
    fails(&mut home.attest(&several), 2, &["--challenge takes one transcript"]);
}

#[test]
fn only_a_trace_of_cells_can_be_challenged_and_only_what_is_kept_opened() {
    let home = ran();
    opened(&home, "4");
    home.write("t.cbor", Making::default().make().seal().as_bytes());
    let words = ["t.cbor: the trace is none, so single cells of it cannot be opened"];
    fails(&mut home.attest(&["challenge", "t.cbor", "--out", "c.json"]), 2, &words);
    let nonce = "ab".repeat(65);
    let long = ["challenge", "transcript.cbor", "--nonce", &nonce, "--out", "c.json"];
    fails(&mut home.attest(&long), 2, &["a nonce of 65 bytes, at most 64 are read"]);
    fails(&mut home.attest(&["challenge", "transcript.cbor"]), 2, &["challenge.json exists"]);
    let key = text(&home.config().join("key.pem")).to_owned();
    let over = ["challenge", "transcript.cbor", "--overwrite", "--out", &key];
    fails(&mut home.attest(&over), 2, &["key.pem is a private key, which is never written over"]);
    let model = tiny_model();
    for (file, words) in [
        ("transcript.cbor", "transcript.cbor: the transcript has no openings"),
        ("opened.cbor", "opened.cbor: it opens a draw itself, not every cell"),
    ] {
        let open = ["open", file, "--challenge", "challenge.json", "--model", text(&model)];
        let more = ["--out", "again.cbor"];
        fails(home.attest(&open).args(more), 2, &[words, "--trace cells"]);
        assert!(!home.path("again.cbor").exists(), "nothing half is left");
    }
    // A kept file with one byte of a row changed.
    let mut kept = fs::read(home.path("transcript.kept.cbor")).unwrap();
    let at = kept.len() - 100;
    kept[at] ^= 1;
    home.write("damaged.cbor", kept);
    let open = ["open", "damaged.cbor", "--challenge", "challenge.json", "--model", text(&model)];
    let words = ["damaged.cbor: the openings do not lead to the trace's root"];
    fails(home.attest(&open).args(["--out", "again.cbor"]), 2, &words);
    assert!(!home.path("again.cbor").exists());
}

#[test]
fn a_run_that_cannot_be_written_leaves_the_one_before() {
    let home = ran();
    let before =
        ["transcript.cbor", "transcript.kept.cbor"].map(|name| fs::read(home.path(name)).unwrap());
    home.write("p.txt", "There she blows");
    let model = tiny_model();
    let args = ["run", "--model", text(&model), "--prompt", "p.txt", "--engine", "emulator"];
    let more = ["--overwrite", "--out", "/dev/full", "--kept", "transcript.kept.cbor"];
    fails(home.attest(&args).args(more), 2, &["/dev/full is not a plain file"]);
    let after =
        ["transcript.cbor", "transcript.kept.cbor"].map(|name| fs::read(home.path(name)).unwrap());
    assert!(before == after);
}

#[test]
fn a_run_keeps_what_it_commits_to_where_it_is_told() {
    let home = Home::configured();
    home.write("p.txt", "Call me");
    let model = tiny_model();
    let run = |more: &[&str]| {
        let mut args = vec!["run", "--model", text(&model), "--prompt", "p.txt"];
        args.extend(["--engine", "emulator", "--max-new-tokens", "2", "--overwrite"]);
        args.extend(more);
        home.attest(&args)
    };
    assert_eq!(end(&mut run(&["--out", "t", "--kept", "elsewhere.cbor"])).exit, 0);
    assert!(home.path("t").exists() && home.path("elsewhere.cbor").exists());
    assert_eq!(end(&mut run(&["--whole", "--out", "w.cbor"])).exit, 0);
    assert!(!home.path("w.kept.cbor").exists());
    let ended = end(&mut home.attest(&["inspect", "w.cbor", "--json"])).json();
    assert_eq!(ended["withheld"], serde_json::json!([]));
    fails(&mut run(&["--out", "t", "--kept", "t"]), 2, &["t: two files need two names"]);
    let ended = end(&mut run(&["--whole", "--kept", "k"]));
    assert!(ended.exit == 2 && ended.stderr.contains("cannot be used with"), "{}", ended.stderr);
}

#[test]
fn a_report_whose_draw_and_coverage_disagree_is_no_report() {
    let home = ran();
    opened(&home, "4");
    let model = tiny_model();
    let verify = ["verify", "opened.cbor", "--challenge", "challenge.json", "--json"];
    let report = end(home.attest(&verify).args(["--model", text(&model)])).stdout;
    let page = ["report", "opened.cbor", "--report", "bad.json", "--out", "bad.html"];
    for (from, to, words) in [
        ("\"cells\":4", "\"cells\":0", "no cell was drawn"),
        ("\"cells\":4", "\"cells\":10", "10 cells were drawn, which are all"),
        ("\"nonce\":\"", "\"nonce\":\"x", "its nonce is not 1 to 64 bytes in hex"),
        ("\"layers\":2", "\"layers\":0", "its model has layers below 1"),
        ("\"layers\":2", "\"layers\":100000000", "or above 4096"),
        ("\"outcome\":\"passed\"", "\"outcome\":\"partial\"", "only the coverage of a draw"),
    ] {
        assert!(report.contains(from), "{from}");
        home.write("bad.json", report.replacen(from, to, 1));
        fails(&mut home.attest(&page), 2, &["bad.json: not a report", words]);
    }
}

#[test]
fn a_difference_between_traces_of_cells_has_its_position() {
    let home = Home::configured();
    let made = Making { trace: TraceMode::Cells, ..Making::default() }.make();
    home.write("a.cbor", &made.whole);
    assert_eq!(end(&mut home.attest(&["diff", "a.cbor", "a.cbor"])).exit, 0);
    let mut other = made;
    // Position 1, layer 1, its values: leaf 6 + 4.
    other.contents[1][32 * 10] ^= 1;
    other.statement.sections[1].sha256 = attest::num::sha256(&[&other.contents[1]]);
    home.write("b.cbor", other.seal().as_bytes());
    let ended = end(&mut home.attest(&["diff", "a.cbor", "b.cbor"]));
    let words = "1 of 30 outputs differ; first pass 0, position 1, layer 1";
    assert!(ended.exit == 1 && ended.stdout.contains(words), "{}", ended.stdout);
    assert!(ended.stdout.contains("layers.1.self_attn.v_proj"), "{}", ended.stdout);
}
