//! `attest inspect`, `plan`, `doctor`, `conformance`.

use std::path::{Path, PathBuf};

use attest::num::sha256;
use attest::transcript::statement::{Extension, TraceMode};
use ciborium::Value;

use crate::support::Making;
use crate::{Home, end, fails, text, tiny_model};

#[test]
fn inspect_prints_claims_and_says_so() {
    let home = Home::empty();
    let made = Making { trace: TraceMode::Layers, ..Making::default() }.make();
    let sealed = made.seal();
    home.write("t.cbor", sealed.as_bytes());
    let ended = end(&mut home.attest(&["inspect", "t.cbor"]));
    assert_eq!(ended.exit, 0);
    assert!(ended.stdout.starts_with("NOT CHECKED"), "{}", ended.stdout);
    assert!(ended.stdout.contains(&sealed.digest().to_string()));

    let json = end(&mut home.attest(&["inspect", "t.cbor", "--json"])).json();
    assert_eq!(json["checked"], false);
    assert_eq!(json["digest"], sealed.digest().to_string());
    assert_eq!(json["tokens_out"], serde_json::json!(made.statement.tokens_out));
    assert_eq!(json["prompt"]["hex"], hex::encode(&made.statement.prompt));

    home.write("t.cbor", &sealed.as_bytes()[1..]);
    fails(&mut home.attest(&["inspect", "t.cbor"]), 4, &["byte 0", "tag 18"]);
}

#[test]
fn inspect_shows_the_fields_that_it_does_not_know() {
    let home = Home::empty();
    let mut made = Making::default().make();
    let bytes = Value::Bytes(vec![0xab, 0xcd]);
    let inner = Value::Map(vec![(Value::from(1), Value::Array(vec![bytes, Value::from(7)]))]);
    made.statement.extensions = vec![
        Extension { key: 64, value: Value::from("a \"quoted\"\nline") },
        Extension { key: u64::MAX, value: inner },
    ];
    home.write("t.cbor", made.seal().as_bytes());
    let ended = end(&mut home.attest(&["inspect", "t.cbor"]));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    for line in
        [r#"key 64       "a \"quoted\"\nline""#, "key 18446744073709551615 {1: [h'abcd', 7]}"]
    {
        assert!(ended.stdout.lines().any(|found| found == line), "{line}: {}", ended.stdout);
    }
    let json = end(&mut home.attest(&["inspect", "t.cbor", "--json"])).json();
    let expected = serde_json::json!([
        { "key": 64, "cbor": r#""a \"quoted\"\nline""# },
        { "key": u64::MAX, "cbor": "{1: [h'abcd', 7]}" },
    ]);
    assert_eq!(json["extensions"], expected);
}

#[test]
fn the_canonical_plan_hashes_to_the_digest_in_transcripts() {
    let home = Home::empty();
    let statement = Making::default().make().statement;
    let model = tiny_model();
    for pass in [&statement.passes[0], &statement.passes[2]] {
        let (start, tokens) = (pass.start_position.to_string(), pass.token_count.to_string());
        let args = ["plan", "--model", text(&model), "--start", &start, "--tokens", &tokens];
        let ended = end(home.attest(&args).arg("--canonical"));
        assert_eq!(ended.exit, 0, "{}", ended.stderr);
        assert_eq!(sha256(&[ended.stdout.as_bytes()]), pass.plan_digest);
        let json = end(home.attest(&args).arg("--json")).json();
        assert_eq!(json["digest"], pass.plan_digest.to_string());
        let ended = end(&mut home.attest(&args));
        assert!(ended.stdout.contains(&pass.plan_digest.to_string()));
        assert!(ended.stdout.contains("layers.1.self_attn.attention"), "{}", ended.stdout);
    }
}

#[test]
fn a_plan_is_refused_past_the_context_and_for_a_hostile_configuration() {
    let home = Home::empty();
    let model = tiny_model();
    let plan = |start: &str, tokens: &str| {
        home.attest(&["plan", "--model", text(&model), "--start", start, "--tokens", tokens])
    };
    let layer = |layer: &str| home.attest(&["plan", "--model", text(&model), "--layer", layer]);
    let last = end(&mut layer("1"));
    assert_eq!(last.exit, 0, "{}", last.stderr);
    assert!(last.stdout.contains("layers.1.mlp.down_proj"), "{}", last.stdout);
    fails(&mut layer("2"), 2, &["there is no layer 2: the model has 2, from 0 on"]);
    assert_eq!(end(&mut plan("1023", "1")).exit, 0, "the last position of the context");
    fails(&mut plan("1023", "2"), 2, &["2 tokens from position 1023", "1025", "context of 1024"]);
    fails(&mut plan("4294967295", "4294967295"), 2, &["8589934590", "context of 1024"]);

    let config = std::fs::read_to_string(model.join("config.json")).unwrap();
    std::fs::create_dir(home.path("hostile")).unwrap();
    let layers = "\"num_hidden_layers\": 2";
    assert!(config.contains(layers));
    let config = config.replace(layers, "\"num_hidden_layers\": 1000000000");
    home.write("hostile/config.json", config);
    let model = home.path("hostile");
    fails(&mut home.attest(&["plan", "--model", text(&model)]), 5, &["num_hidden_layers"]);
}

#[test]
fn doctor_says_what_is_there_and_what_is_not() {
    let home = Home::empty();
    let ended = end(&mut home.attest(&["doctor"]));
    assert_eq!((ended.exit, &*ended.stderr), (0, ""));
    for word in ["emulator", "GPU", "h200", "attest keygen", "trust"] {
        assert!(ended.stdout.contains(word), "{word}: {}", ended.stdout);
    }
    let home = Home::configured();
    let model = tiny_model();
    let json = end(&mut home.attest(&["doctor", "--json", "--model", text(&model)])).json();
    assert!(json["key_file"].as_str().unwrap().ends_with("key.pem"), "{json}");
    assert!(json["model"].as_str().unwrap().contains("2 layers"), "{json}");
    fails(
        &mut home.attest(&["doctor", "--model", "absent"]),
        5,
        &["there is no model named absent"],
    );
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("spec/vectors/bf16_bf16_cf32_df32_k8.bin")
}

#[test]
fn conformance_passes_on_vectors_and_fails_on_a_changed_copy() {
    let home = Home::empty();
    let ended = end(&mut home.attest(&["conformance", text(&vectors())]));
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.lines().last().unwrap().contains(" 0 differences"), "{}", ended.stdout);

    let mut bytes = std::fs::read(vectors()).unwrap();
    *bytes.last_mut().unwrap() ^= 0x80;
    let changed = home.write("changed.bin", bytes);
    let ended = end(&mut home.attest(&["conformance", text(&changed)]));
    assert_eq!(ended.exit, 1, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("first: record"), "{}", ended.stdout);
    let json = end(&mut home.attest(&["conformance", "--json", text(&changed)])).json();
    let columns = json["files"][0]["columns"].as_array().unwrap();
    assert!(columns.iter().any(|column| column["differences"].as_u64() > Some(0)), "{json}");

    let text_file = home.write("text.bin", "no vectors");
    fails(&mut home.attest(&["conformance", text(&text_file)]), 4, &["text.bin"]);
    fails(&mut home.attest(&["conformance", "absent.bin"]), 2, &["absent.bin"]);
}

#[test]
fn help_lists_the_exit_codes() {
    let ended = end(&mut Home::empty().attest(&["--help"]));
    assert_eq!((ended.exit, &*ended.stderr), (0, ""));
    for word in ["MISMATCH", "UNTRUSTED", "MALFORMED", "INCOMPLETE", "70"] {
        assert!(ended.stdout.contains(word), "{word}");
    }
}

#[cfg(unix)]
#[test]
fn the_root_of_the_folder_is_stated_and_no_unused_entry_stops_a_run() {
    let home = Home::configured();
    let model = home.path("model");
    std::fs::create_dir(&model).unwrap();
    for entry in std::fs::read_dir(tiny_model()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, model.join(path.file_name().unwrap())).unwrap();
    }
    home.write("p.txt", "Call me");
    let stated = |out: &str| {
        let args = ["run", "--model", text(&model), "--prompt", "p.txt", "--engine", "emulator"];
        let ended = end(home.attest(&args).args(["--max-new-tokens", "1", "--out", out]));
        assert_eq!(ended.exit, 0, "{}", ended.stderr);
        let json = end(&mut home.attest(&["inspect", out, "--json"])).json();
        json["model"]["oms_root"].clone()
    };
    let root = attest::model::Model::open(&model).unwrap().oms_root().unwrap();
    assert_eq!(stated("whole.cbor"), root.to_string());
    std::os::unix::fs::symlink("absent", model.join("unused")).unwrap();
    assert_eq!(stated("dangling.cbor"), serde_json::Value::Null);
}

#[test]
fn a_folder_without_a_model_has_one_exit_code_everywhere() {
    let home = Home::configured();
    std::fs::create_dir(home.path("empty")).unwrap();
    home.write("p.txt", "Call me");
    home.write("t.cbor", Making::default().make().seal().as_bytes());
    for args in [
        &["plan", "--model", "empty"][..],
        &["doctor", "--model", "empty"],
        &["run", "--model", "empty", "--prompt", "p.txt"],
        &["bench", "forward", "--model", "empty"],
    ] {
        fails(&mut home.attest(args), 5, &["config.json is missing from "]);
    }
    let ended = end(&mut home.attest(&["verify", "t.cbor", "--model", "empty"]));
    assert_eq!(ended.exit, 5, "{}", ended.stdout);
    assert!(ended.stdout.contains("config.json is missing from "), "{}", ended.stdout);
}

#[test]
fn a_transcript_may_come_from_standard_input() {
    let home = Home::configured();
    let sealed = Making::default().make().seal();
    let model = tiny_model();
    let inspected =
        end(home.attest(&["inspect", "-", "--json"]).write_stdin(sealed.as_bytes())).json();
    assert_eq!(inspected["digest"], sealed.digest().to_string());
    let args = ["verify", "-", "--model", text(&model)];
    let verified = end(home.attest(&args).write_stdin(sealed.as_bytes()));
    assert_eq!((verified.exit, verified.stdout.lines().last()), (0, Some("VERIFIED")));
    fails(home.attest(&["inspect", "-"]).write_stdin(""), 4, &[]);
    // A file of that name has another spelling.
    home.write("-", sealed.as_bytes());
    assert_eq!(end(&mut home.attest(&["inspect", "./-"])).exit, 0);
}

#[test]
fn an_error_of_the_command_line_is_json_where_that_is_asked_for() {
    let home = Home::empty();
    // (arguments, the sentence)
    let cases: [(&[&str], &str); 6] = [
        (
            &["verify", "--json"],
            "the following required arguments were not provided: <TRANSCRIPT>...",
        ),
        (&["--json", "prove"], "unrecognized subcommand 'prove'"),
        (&["--json", "model"], "a command is missing"),
        (&["plan", "--model", "m", "--no", "--json"], "unexpected argument '--no' found"),
        (&["doctor", "--json", "--quiet"], "--json and --quiet exclude each other"),
        (
            &["verify", "t.cbor", "--nonce", "xyz", "--json"],
            "invalid value 'xyz' for '--nonce <HEX>': Odd number of digits",
        ),
    ];
    for (args, sentence) in cases {
        let ended = end(&mut home.attest(args));
        let json = ended.json();
        assert_eq!((ended.exit, &json["exit"]), (2, &2.into()), "{args:?}");
        assert_eq!(json["error"], sentence, "{args:?}");
        assert!(json["hint"].is_string() && !ended.stderr.is_empty(), "{args:?}: {json}");
        let without: Vec<&str> = args.iter().copied().filter(|&arg| arg != "--json").collect();
        if !args.contains(&"--quiet") {
            let ended = end(&mut home.attest(&without));
            assert_eq!((ended.exit, &*ended.stdout), (2, ""), "{without:?}");
        }
    }
    for asked in [["--json", "--help"], ["--json", "--version"]] {
        let ended = end(&mut home.attest(&asked));
        assert_eq!((ended.exit, &*ended.stderr), (0, ""), "{asked:?}");
        assert!(ended.stdout.contains("attest"), "{}", ended.stdout);
    }
}
