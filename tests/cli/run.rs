//! `attest keygen` and `attest run`: from nothing to a transcript.

use std::fs;
use std::path::Path;

use crate::{Home, end, fails, text, tiny_model};

const PROMPT: &str = "Call me";

fn copy_model(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for entry in fs::read_dir(tiny_model()).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, folder.join(from.file_name().unwrap())).unwrap();
    }
}

/// Arguments of a short run.
fn run<'a>(model: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", "--model", model, "--prompt", "prompt.txt"];
    args.extend(["--max-new-tokens", "3", "--engine", "emulator"]);
    args.extend(more);
    args
}

#[test]
fn a_key_is_made_used_and_trusted() {
    let home = Home::empty();
    let ended = end(&mut home.attest(&["keygen", "--name", "me \"quoted\"", "--json"]));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let made = ended.json();
    fs::write(home.config().join("trust.toml"), made["trust_entry"].as_str().unwrap()).unwrap();

    home.write("prompt.txt", PROMPT);
    let model = tiny_model();
    let ended = end(&mut home.attest(&run(text(&model), &["--json", "--trace", "layers"])));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let ran = ended.json();
    assert_eq!(ran["key_id"], made["key_id"]);
    assert_eq!(ran["engine"], "emulator");
    assert_eq!(ran["tokens_out"], 3);
    assert_eq!(ran["transcript_file"], "transcript.cbor");

    let args = ["verify", "transcript.cbor", "--model", text(&model), "--json"];
    let ended = end(&mut home.attest(&args));
    assert_eq!(ended.exit, 0, "{}", ended.stdout);
    let verified = ended.json();
    assert_eq!(verified["transcript"], ran["transcript"]);
    assert_eq!(verified["text"], ran["text"]);
}

#[test]
fn a_key_is_for_its_owner_only_and_never_overwritten() {
    let home = Home::empty();
    let ended = end(&mut home.attest(&["keygen"]));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert!(ended.stdout.contains("public_key = "), "{}", ended.stdout);
    let path = home.config().join("key.pem");
    let key = fs::read_to_string(&path).unwrap();
    assert!(!ended.stdout.contains(key.lines().nth(1).unwrap()), "the private key is printed");
    #[cfg(unix)]
    {
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
    let refused = fails(&mut home.attest(&["keygen"]), 2, &["key.pem", "exists"]);
    assert!(refused.stderr.contains("never overwritten"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), key);
    let ended = end(&mut home.attest(&["keygen", "--out", "new/folder/k.pem"]));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
}

#[test]
fn the_file_does_not_depend_on_the_number_of_threads() {
    let home = Home::configured();
    home.write("prompt.txt", PROMPT);
    let model = tiny_model();
    let file = |threads: &'static str| {
        let out = format!("{threads}.cbor");
        let more = ["--threads", threads, "--out", &out, "--claimed-time", "1796045700"];
        let ended = end(&mut home.attest(&run(text(&model), &more)));
        assert_eq!(ended.exit, 0, "{}", ended.stderr);
        fs::read(home.path(&out)).unwrap()
    };
    assert!(file("1") == file("2"));
}

#[test]
fn without_a_key_the_sentence_names_keygen() {
    let home = Home::empty();
    home.write("prompt.txt", PROMPT);
    let model = tiny_model();
    let ended =
        fails(&mut home.attest(&run(text(&model), &[])), 2, &["there is no signing key at"]);
    assert!(ended.stderr.contains("attest keygen"), "{}", ended.stderr);
    assert!(!home.path("transcript.cbor").exists());
}

#[test]
#[cfg(unix)]
fn a_key_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::configured();
    home.write("prompt.txt", PROMPT);
    let key = home.config().join("key.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let model = tiny_model();
    fails(&mut home.attest(&run(text(&model), &[])), 2, &["key.pem", "mode 644, expected 600"]);
}

#[test]
fn a_key_of_another_kind_is_refused_by_name() {
    let home = Home::empty();
    home.write("prompt.txt", PROMPT);
    let key = home.write("k.pem", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let model = tiny_model();
    fails(
        &mut home.attest(&run(text(&model), &["--key", text(&key)])),
        2,
        &["k.pem", "public key"],
    );
}

#[test]
fn without_a_gpu_the_cuda_engine_is_one_sentence() {
    let home = Home::configured();
    home.write("prompt.txt", PROMPT);
    let doctor = end(&mut home.attest(&["doctor", "--json"])).json();
    if doctor["gpu_usable"] == true {
        println!("skipped: this machine has a GPU");
        return;
    }
    let model = tiny_model();
    let args = ["run", "--model", text(&model), "--prompt", "prompt.txt", "--engine", "cuda"];
    fails(&mut home.attest(&args), 5, &["hint: "]);
    // The default falls back, and says so.
    let args = ["run", "--model", text(&model), "--prompt", "prompt.txt", "--max-new-tokens", "1"];
    let ended = end(&mut home.attest(&args));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert!(ended.stderr.starts_with("note: ") && ended.stderr.contains("emulator"));
}

#[test]
fn a_name_is_found_where_models_are_kept() {
    let home = Home::configured();
    home.write("prompt.txt", PROMPT);
    copy_model(&home.path("models/Tiny-Whale"));
    let mut command = home.attest(&run("tiny-whale", &[]));
    let ended = end(command.env("ATTEST_MODELS", home.path("models")));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let mut command = home.attest(&["verify", "transcript.cbor"]);
    let ended = end(command.env("ATTEST_MODELS", home.path("models")));
    // The claimed time is now, outside the window of the tests' trust file.
    assert!([0, 3].contains(&ended.exit), "{}", ended.stdout);
}

#[test]
#[cfg(unix)]
fn a_name_is_found_in_a_hugging_face_cache() {
    let home = Home::configured();
    home.write("prompt.txt", PROMPT);
    let entry = home.path("hub/models--Pequod--Tiny-Whale");
    let snapshot = entry.join("snapshots/0123abc");
    fs::create_dir_all(entry.join("refs")).unwrap();
    fs::write(entry.join("refs/main"), "0123abc").unwrap();
    copy_model(&entry.join("blobs"));
    fs::create_dir_all(&snapshot).unwrap();
    for blob in fs::read_dir(entry.join("blobs")).unwrap() {
        let name = blob.unwrap().file_name();
        let target = Path::new("../../blobs").join(&name);
        std::os::unix::fs::symlink(target, snapshot.join(&name)).unwrap();
    }
    for name in ["tiny-whale", "Pequod/Tiny-Whale"] {
        let more = ["--claimed-time", "1796045700", "--overwrite"];
        let ended = end(home.attest(&run(name, &more)).env("HF_HUB_CACHE", home.path("hub")));
        assert_eq!(ended.exit, 0, "{}", ended.stderr);
    }
    // The transcript names the model, and the verifier's cache has it.
    let mut command = home.attest(&["verify", "transcript.cbor"]);
    let ended = end(command.env("HF_HUB_CACHE", home.path("hub")));
    assert_eq!(ended.exit, 0, "{}", ended.stdout);
    assert!(ended.stdout.contains("Pequod/Tiny-Whale"), "{}", ended.stdout);
}

#[test]
fn a_missing_model_lists_the_places() {
    let home = Home::configured();
    home.write("prompt.txt", PROMPT);
    let mut command = home.attest(&run("qwen3-4b", &[]));
    command.env("ATTEST_MODELS", "/nowhere/models").env("HF_HUB_CACHE", "/nowhere/hub");
    let words = ["there is no model named qwen3-4b", "/nowhere/models/qwen3-4b", "/nowhere/hub"];
    fails(&mut command, 5, &words);
}

#[test]
fn prompts_that_cannot_be_used_are_refused_by_reason() {
    let home = Home::configured();
    let long = "the whale ".repeat(2000);
    let cases: &[(&str, &[u8], &[&str])] = &[
        ("no text", b"Call \xff me", &["prompt.txt", "not valid UTF-8 at byte 5 of 9"]),
        ("empty", b"", &["the prompt has no token"]),
        (
            "too long",
            long.as_bytes(),
            &["the prompt's ", " do not fit the model's context of 1024"],
        ),
    ];
    let model = tiny_model();
    for (name, prompt, words) in cases {
        home.write("prompt.txt", prompt);
        println!("{name}");
        // The path is where the user looks.
        let words = &[&["error: prompt.txt: "], *words].concat();
        fails(&mut home.attest(&run(text(&model), &[])), 2, words);
        assert!(!home.path("transcript.cbor").exists(), "{name}");
    }
    fs::remove_file(home.path("prompt.txt")).unwrap();
    fails(&mut home.attest(&run(text(&model), &[])), 2, &["prompt.txt", "No such file"]);
    home.write("prompt.txt", "nul \0 byte");
    let ended = end(&mut home.attest(&run(text(&model), &[])));
    assert_eq!(ended.exit, 0, "a zero byte is text: {}", ended.stderr);
}

#[test]
fn a_limit_that_leaves_the_context_is_refused_with_what_would_fit() {
    let home = Home::configured();
    home.write("prompt.txt", PROMPT);
    let model = tiny_model();
    let limited = |limit: &str| {
        let args = ["run", "--model", text(&model), "--prompt", "prompt.txt"];
        home.attest(&[&args[..], &["--max-new-tokens", limit]].concat())
    };
    assert_eq!(end(&mut limited("0")).exit, 2);
    let prompt = attest::model::Model::open(&model).unwrap();
    let prompt = prompt.tokenizer().encode(PROMPT.as_bytes()).unwrap().len();
    for limit in [4_294_967_295, 1025 - prompt] {
        let sentence = format!(
            "{} tokens ({prompt} of the prompt, {limit} to generate) do not fit the model's \
             context of 1024",
            prompt + limit
        );
        let hint = format!("at most --max-new-tokens {} fit", 1024 - prompt);
        fails(&mut limited(&limit.to_string()), 2, &[&sentence, &hint]);
    }
    assert!(!home.path("transcript.cbor").exists());
}

/// A prompt that is refused must not wait for gigabytes to be read.
#[test]
#[cfg(unix)]
fn what_can_be_refused_is_refused_before_the_weights_are_digested() {
    let home = Home::configured();
    home.write("prompt.txt", "");
    // A blob of the cache under another name than its digest: only digesting finds it.
    let entry = home.path("hub/models--Pequod--Tiny");
    copy_model(&entry.join("snapshots/0123abc"));
    let weights = entry.join("snapshots/0123abc/model.safetensors");
    let blob = "0".repeat(64);
    fs::create_dir_all(entry.join("blobs")).unwrap();
    fs::rename(&weights, entry.join("blobs").join(&blob)).unwrap();
    std::os::unix::fs::symlink(format!("../../blobs/{blob}"), &weights).unwrap();
    let folder = entry.join("snapshots/0123abc");
    fails(&mut home.attest(&run(text(&folder), &[])), 2, &["the prompt has no token"]);
    home.write("prompt.txt", PROMPT);
    fails(&mut home.attest(&run(text(&folder), &[])), 5, &["links to blob 000"]);
}

#[test]
fn what_is_there_is_not_overwritten() {
    let home = Home::configured();
    home.write("prompt.txt", PROMPT);
    let model = tiny_model();
    let model = text(&model);
    home.write("transcript.cbor", "evidence");
    let refused = fails(
        &mut home.attest(&run(model, &[])),
        2,
        &["transcript.cbor exists; nothing was written", "--overwrite"],
    );
    assert!(refused.stdout.is_empty());
    assert_eq!(fs::read(home.path("transcript.cbor")).unwrap(), b"evidence");
    let ended = end(&mut home.attest(&run(model, &["--overwrite"])));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);

    copy_model(&home.path("model"));
    // What the run itself reads, and what is no plain file, stays in any case.
    let key = home.config().join("key.pem");
    for (out, words) in [
        ("prompt.txt", "is read by this run"),
        (text(&key), "is read by this run"),
        ("folder", "is not a plain file"),
        ("nowhere/t.cbor", "the folder nowhere is not there"),
        ("model/new.cbor", "in the model's folder"),
    ] {
        fs::create_dir_all(home.path("folder")).unwrap();
        let model = if out.starts_with("model/") { "model" } else { model };
        let args = run(model, &["--overwrite", "--out", out]);
        fails(&mut home.attest(&args), 2, &[words]);
    }
    assert_eq!(fs::read_to_string(home.path("prompt.txt")).unwrap(), PROMPT);
    assert!(fs::read_to_string(&key).unwrap().contains("PRIVATE KEY"));
    let left = fs::read_dir(home.path("")).unwrap();
    let names: Vec<String> = left.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.ends_with(".partial")), "{names:?}");
}

#[cfg(unix)]
#[test]
fn a_linked_model_keeps_the_name_it_was_asked_by() {
    let home = Home::configured();
    home.write("prompt.txt", PROMPT);
    std::os::unix::fs::symlink(tiny_model(), home.path("tiny-link")).unwrap();
    let ended = end(&mut home.attest(&run("tiny-link", &["--json"])));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert_eq!(ended.json()["model"], "tiny-link");
}

/// A report that nobody can read must not end in success.
#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_printed_is_a_failure() {
    let home = Home::configured();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_attest"));
    command.args(["doctor"]).env("ATTEST_CONFIG", home.config()).stdout(full);
    let status = command.stderr(std::process::Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(2));
}
