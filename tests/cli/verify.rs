//! `attest verify`: one exit code a verdict, and what is printed with it.

use std::fs;

use attest::transcript::Transcript;

use crate::support::{Made, Making, key, other_key, tiny, trust_text};
use crate::{Home, end, fails, text, tiny_model};

fn honest() -> Made {
    Making::default().make()
}

/// An authentic transcript with one changed logit.
fn lie() -> Vec<u8> {
    let mut made = honest();
    made.contents[0][0] ^= 1;
    made.commit();
    made.seal().as_bytes().to_vec()
}

fn strange() -> Vec<u8> {
    let made = honest();
    let sealed = Transcript::seal(&made.statement, &made.contents, &other_key()).unwrap();
    sealed.as_bytes().to_vec()
}

#[test]
fn verified_is_exit_0_and_the_last_line_of_stdout() {
    let home = Home::configured();
    home.write("t.cbor", honest().seal().as_bytes());
    let model = tiny_model();
    let args = ["verify", "t.cbor", "--model", text(&model)];
    let ended = end(&mut home.attest(&args));
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stdout.lines().last(), Some("VERIFIED"));
    // Nothing to say beside the result, but progress where this takes long.
    assert!(
        ended.stderr.lines().all(|line| line.starts_with("re-executing: ")),
        "{}",
        ended.stderr
    );
    assert!(ended.stdout.contains("signer says"), "{}", ended.stdout);
    for subject in ["encoding", "signature", "trust", "model", "execution", "sampling"] {
        let line = ended.stdout.lines().find(|line| line.starts_with(subject));
        assert!(line.is_some_and(|line| line.contains(" ok ")), "{subject}: {line:?}");
    }
}

/// What is verified, the file, the trust file, further options, exit code, word.
type Case<'a> = (&'a str, &'a [u8], &'a str, &'a [&'a str], i32, &'a str);

#[test]
fn each_verdict_has_its_exit_code_its_word_and_its_json() {
    let model = tiny_model();
    let model = text(&model);
    let good = honest().seal().as_bytes().to_vec();
    let cut = good[..good.len() - 1].to_vec();
    let revoked = format!("{}revoked_at = 2026-11-30\nreason = \"lost\"\n", trust_text("\"*\""));
    let star = trust_text("\"*\"");
    let cases: &[Case] = &[
        ("honest", &good, &star, &["--model", model], 0, "VERIFIED"),
        ("a changed logit", &lie(), &star, &["--model", model], 1, "MISMATCH"),
        ("another signer", &strange(), &star, &["--model", model], 3, "UNTRUSTED"),
        ("an empty trust file", &good, "", &["--model", model], 3, "UNTRUSTED"),
        ("a revoked key", &good, &revoked, &["--model", model], 3, "UNTRUSTED"),
        ("another nonce", &good, &star, &["--model", model, "--nonce", "00"], 3, "UNTRUSTED"),
        ("a cut file", &cut, &star, &["--model", model], 4, "MALFORMED"),
        ("an empty file", b"", &star, &["--model", model], 4, "MALFORMED"),
        ("some text", b"hello", &star, &["--model", model], 4, "MALFORMED"),
        ("no model", &good, &star, &[], 5, "INCOMPLETE"),
    ];
    for (name, file, trust, options, exit, word) in cases {
        let home = Home::empty();
        home.write("t.cbor", file);
        home.write("trust.toml", trust);
        let mut args = vec!["verify", "t.cbor", "--trust", "trust.toml"];
        args.extend(*options);
        let ended = end(&mut home.attest(&args));
        let shown = format!("{name}: {}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.exit, *exit, "{shown}");
        assert_eq!(ended.stdout.lines().last(), Some(*word), "{shown}");
        let praised = shown.to_lowercase().contains("verified");
        assert_eq!(praised, *exit == 0, "no other verdict speaks of VERIFIED: {shown}");

        args.push("--json");
        let ended = end(&mut home.attest(&args));
        assert_eq!(ended.exit, *exit, "{name}");
        let json = ended.json();
        assert_eq!(json["verdict"], *word, "{name}");
        assert_eq!(json["exit"], *exit, "{name}");
        assert_eq!(json["checks"].as_array().unwrap().len(), 10, "{name}");

        args.retain(|&arg| arg != "--json");
        args.push("--quiet");
        let ended = end(&mut home.attest(&args));
        assert_eq!((ended.exit, &*ended.stdout, &*ended.stderr), (*exit, "", ""), "{name}");
    }
}

#[test]
fn a_difference_is_located_in_text_and_json() {
    let home = Home::configured();
    home.write("t.cbor", lie());
    let model = tiny_model();
    let args = ["verify", "t.cbor", "--model", text(&model), "--json"];
    let json = end(&mut home.attest(&args)).json();
    let checks = json["checks"].as_array().unwrap();
    let execution = checks.iter().find(|check| check["subject"] == "execution").unwrap();
    assert_eq!(execution["outcome"], "failed");
    let finding = &execution["finding"];
    assert_eq!((&finding["pass"], &finding["step"]), (&0.into(), &"lm_head".into()));
    assert_eq!(finding["difference"]["kind"], "element");
    assert_eq!(finding["difference"]["differing"], 1);
}

#[test]
fn without_a_trust_file_nothing_is_executed() {
    let home = Home::empty();
    home.write("t.cbor", honest().seal().as_bytes());
    let model = tiny_model();
    let ended = end(&mut home.attest(&["verify", "t.cbor", "--model", text(&model)]));
    assert_eq!(ended.exit, 3);
    assert!(ended.stdout.contains("no trust file was given"), "{}", ended.stdout);
    assert!(ended.stderr.contains("hint:") && ended.stderr.contains("--trust"), "{}", ended.stderr);
    assert!(!ended.stdout.contains("execution    ok"));
}

#[test]
fn any_key_may_be_accepted_but_that_is_untrusted_at_best() {
    let home = Home::empty();
    home.write("t.cbor", strange());
    let model = tiny_model();
    let args = ["verify", "t.cbor", "--model", text(&model), "--insecure-accept-any-key"];
    let ended = end(&mut home.attest(&args));
    assert_eq!(ended.exit, 3, "{}", ended.stdout);
    assert!(ended.stdout.contains("0 bits differ"), "{}", ended.stdout);
    assert_eq!(ended.stdout.lines().last(), Some("UNTRUSTED"));
    assert!(ended.stderr.starts_with("warning:"), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_used_is_a_usage_error() {
    let home = Home::configured();
    fails(&mut home.attest(&["verify", "absent.cbor"]), 2, &["absent.cbor", "No such file"]);
    home.write("t.cbor", honest().seal().as_bytes());
    fails(&mut home.attest(&["verify", "t.cbor", "--trust", "absent.toml"]), 2, &["absent.toml"]);
    for args in [&["verify"][..], &["verify", "t.cbor", "--nonce", "xyz"], &["prove"], &[]] {
        let ended = end(&mut home.attest(args));
        assert_eq!((ended.exit, &*ended.stdout), (2, ""), "{args:?}");
    }
}

#[test]
fn a_trust_file_that_cannot_be_used_is_a_usage_error() {
    let home = Home::empty();
    home.write("t.cbor", honest().seal().as_bytes());
    let weak = "0100000000000000000000000000000000000000000000000000000000000000";
    let cases = [
        ("not TOML".to_owned(), "line 1"),
        (trust_text("\"*\"").replace("role", "rule"), "unknown field"),
        (trust_text("\"*\"").replace(&key().public().to_hex(), weak), "weak"),
    ];
    for (trust, word) in cases {
        home.write("trust.toml", trust);
        let mut command = home.attest(&["verify", "t.cbor", "--trust", "trust.toml"]);
        fails(&mut command, 2, &["error: trust.toml: trust file", word]);
    }
}

#[test]
fn the_name_in_a_transcript_finds_a_model_but_opens_no_path() {
    let named = |name: &str| {
        let mut made = honest();
        made.statement.model.name = name.into();
        made.seal().as_bytes().to_vec()
    };
    let home = Home::configured();
    let model = tiny_model();
    // Paths to the right model, which the user did not name.
    let paths = [text(&model), "./model", "../model", "model/", "/etc", "..", "", "C:\\m", "a/b/c"];
    for name in paths {
        home.write("t.cbor", named(name));
        let mut command = home.attest(&["verify", home.path("t.cbor").to_str().unwrap()]);
        let ended = end(command.current_dir(tiny()).env("ATTEST_MODELS", tiny()));
        assert_eq!(ended.exit, 5, "{name}: {}", ended.stdout);
        let refusal = format!("{name:?} is no plain model name");
        assert!(ended.stdout.contains(&refusal), "{name}: {}", ended.stdout);
    }
    // A plain name that happens to be a folder of the working folder.
    home.write("t.cbor", named("model"));
    let file = home.path("t.cbor");
    let ended = end(home.attest(&["verify", text(&file)]).current_dir(tiny()));
    assert_eq!(ended.exit, 5, "{}", ended.stdout);
    assert!(ended.stdout.contains("there is no model named model"), "{}", ended.stdout);
    assert!(ended.stderr.ends_with("with --model FOLDER\n"), "{}", ended.stderr);
    let ended = end(&mut home.attest(&["verify", text(&file), "--model", "absent"]));
    assert_eq!((ended.exit, &*ended.stderr), (5, ""), "the option was used already");
    // The same name where the user keeps models.
    let ended = end(home.attest(&["verify", text(&file)]).env("ATTEST_MODELS", tiny()));
    assert_eq!(ended.exit, 0, "{}", ended.stdout);
}

#[test]
fn a_transcript_cannot_write_to_the_terminal() {
    let home = Home::configured();
    let mut made = honest();
    made.statement.tool.name = "\u{1b}[2J\nVERIFIED\n\u{202e}".into();
    made.statement.model.name = "m\u{7}\nVERIFIED".into();
    home.write("t.cbor", made.seal().as_bytes());
    let model = tiny_model();
    let harmless = |text: &str| {
        let printable = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
        assert!(text.chars().all(printable), "{text:?}");
        assert!(text.lines().filter(|line| *line == "VERIFIED").count() <= 1, "{text}");
    };
    let ended = end(&mut home.attest(&["verify", "t.cbor", "--model", text(&model)]));
    assert_eq!(ended.exit, 0);
    harmless(&ended.stdout);
    let ended = end(&mut home.attest(&["inspect", "t.cbor"]));
    harmless(&ended.stdout);
    assert!(!ended.stdout.lines().any(|line| line == "VERIFIED"), "{}", ended.stdout);
    let ended = end(&mut home.attest(&["verify", "t.cbor"]));
    assert_eq!(ended.exit, 5);
    harmless(&ended.stdout);
    harmless(&ended.stderr);
    fs::remove_file(home.path("t.cbor")).unwrap();
}

/// The tiny model in the home, its weights last written a day ago.
fn old_copy_of_the_model(home: &Home) -> String {
    let folder = home.path("model");
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(tiny_model()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    let weights = fs::File::options().write(true).open(folder.join("model.safetensors")).unwrap();
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
    weights.set_modified(yesterday).unwrap();
    // The inode's time of change cannot be set; it has to grow old by itself.
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    text(&folder).to_owned()
}

#[cfg(target_os = "linux")] // where the cache folder is ~/.cache
#[test]
fn digests_are_remembered_on_request_only_and_the_report_says_so() {
    let home = Home::configured();
    home.write("t.cbor", honest().seal().as_bytes());
    let model = old_copy_of_the_model(&home);
    let cache = home.path(".cache/attest/digests.json");
    let verify = |options: &[&str]| {
        let args = [&["verify", "t.cbor", "--model", &model, "--json"], options].concat();
        let ended = end(&mut home.attest(&args));
        assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
        let json = ended.json();
        let row = json["checks"][4]["detail"].as_str().unwrap().to_owned();
        assert_eq!(json["checks"][4]["subject"], "model");
        assert_eq!(json["digests"]["files"], 4);
        let from_cache = json["digests"]["from_cache"].as_u64().unwrap();
        let told =
            row.ends_with("; 1 of 4 file digests came from the cache and were not recomputed");
        assert_eq!(told, from_cache == 1, "{row}");
        assert_eq!(row.contains("cache"), told, "{row}");
        (from_cache, ended.stderr)
    };
    assert_eq!(verify(&[]).0, 0);
    assert!(!cache.exists(), "nothing is kept unasked");
    assert_eq!(verify(&["--trust-cache"]).0, 0, "the first time there is nothing to remember");
    assert_eq!(verify(&["--trust-cache"]).0, 1);
    let kept = fs::read(&cache).unwrap();

    fs::write(&cache, "not a cache").unwrap();
    assert_eq!(verify(&[]), (0, String::new()), "without the option it is not even read");
    assert_eq!(fs::read(&cache).unwrap(), b"not a cache", "nor written");
    let (from_cache, stderr) = verify(&["--trust-cache"]);
    assert_eq!(from_cache, 0);
    assert!(stderr.contains("digests.json is damaged"), "{stderr}");
    assert!(fs::read(&cache).unwrap() == kept, "and then made again");

    // Another tool wrote other weights of the same length.
    let weights = home.path("model/model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, bytes).unwrap();
    let args = ["verify", "t.cbor", "--model", &model, "--trust-cache"];
    let ended = end(&mut home.attest(&args));
    assert_eq!(ended.exit, 5, "{}", ended.stdout);
    assert!(ended.stdout.contains("model.safetensors has SHA-256"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("cache"), "{}", ended.stdout);
}

#[test]
fn several_transcripts_have_a_report_each_and_the_worst_verdict() {
    let home = Home::configured();
    let good = honest().seal().as_bytes().to_vec();
    home.write("good.cbor", &good);
    home.write("cut.cbor", &good[..good.len() - 1]);
    home.write("lie.cbor", lie());
    home.write("strange.cbor", strange());
    let model = tiny_model();
    let verify = |files: &[&str], more: &[&str]| {
        let args = [&["verify", "--model", text(&model)], files, more].concat();
        end(&mut home.attest(&args))
    };
    // Files, exit code, word.
    let cases: [(&[&str], i32, &str); 5] = [
        (&["good.cbor", "good.cbor"], 0, "VERIFIED"),
        (&["good.cbor", "lie.cbor"], 1, "MISMATCH"),
        (&["lie.cbor", "good.cbor"], 1, "MISMATCH"),
        (&["strange.cbor", "lie.cbor"], 3, "UNTRUSTED"),
        (&["lie.cbor", "strange.cbor", "cut.cbor", "good.cbor"], 4, "MALFORMED"),
    ];
    for (files, exit, word) in cases {
        let ended = verify(files, &["--json"]);
        assert_eq!(ended.exit, exit, "{files:?}: {}", ended.stderr);
        let json = ended.json();
        assert_eq!((&json["exit"], &json["verdict"]), (&exit.into(), &word.into()));
        let list = json["transcripts"].as_array().unwrap();
        assert_eq!(list.len(), files.len());
        for (one, file) in list.iter().zip(files) {
            let mut alone = verify(&[file], &["--json"]).json();
            let mut one = one.clone();
            assert_eq!(one["transcript_file"], *file);
            one.as_object_mut().unwrap().remove("transcript_file");
            for json in [&mut one, &mut alone] {
                json["verifier"].as_object_mut().unwrap().remove("checked_at");
            }
            assert_eq!(one, alone, "{file}: as by itself");
        }
    }
    let ended = verify(&["good.cbor", "lie.cbor"], &[]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "good.cbor");
    let summary = ["VERIFIED     good.cbor", "MISMATCH     lie.cbor", "MISMATCH"];
    assert_eq!(lines[lines.len() - 3..], summary);
}

#[test]
fn several_transcripts_are_refused_before_any_is_verified() {
    let home = Home::configured();
    home.write("t.cbor", honest().seal().as_bytes());
    let model = tiny_model();
    let args = |more: &[&'static str]| {
        home.attest(&[&["verify", "t.cbor", "--model", text(&model)], more].concat())
    };
    fails(&mut args(&["missing.cbor"]), 2, &["missing.cbor: No such file"]);
    std::fs::create_dir(home.path("folder")).unwrap();
    fails(&mut args(&["folder"]), 2, &["folder: is a directory"]);
    fails(&mut args(&["-"]), 2, &["standard input can be verified by itself only"]);
    fails(&mut args(&["t.cbor", "--dry-run"]), 2, &["--dry-run takes one transcript"]);
}

#[test]
fn a_mismatch_has_a_diagnosis_unless_it_is_not_wanted() {
    let home = Home::configured();
    let mut lie = Making::default().make();
    // One bit of the first logit: no way of computing explains it.
    lie.contents[0][0] ^= 1;
    lie.commit();
    home.write("t.cbor", lie.seal().as_bytes());
    let model = tiny_model();
    let args = ["verify", "t.cbor", "--model", text(&model)];
    let row = "\ndiagnosis            none of ";
    let ended = end(&mut home.attest(&args));
    assert_eq!(ended.exit, 1, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains(row) && ended.stdout.ends_with("MISMATCH\n"), "{}", ended.stdout);
    assert!(ended.stderr.contains("note: an output differs; trying up to "), "{}", ended.stderr);
    let json = end(home.attest(&args).arg("--json")).json();
    let execution = |json: &serde_json::Value| {
        let checks = json["checks"].as_array().unwrap().iter();
        checks.into_iter().find(|check| check["subject"] == "execution").unwrap().clone()
    };
    let diagnosis = execution(&json)["finding"]["diagnosis"].as_str().unwrap().to_owned();
    assert!(ended.stdout.contains(&diagnosis), "{diagnosis}");

    let ended = end(home.attest(&args).arg("--no-diagnosis"));
    assert_eq!(ended.exit, 1);
    assert!(!ended.stdout.contains("diagnosis") && ended.stderr.is_empty(), "{}", ended.stderr);
}
