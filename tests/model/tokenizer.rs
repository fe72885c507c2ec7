use std::path::Path;

use attest::model::{Kind, Tokenizer};
use attest::num::sha256;
use serde_json::{Value, json};

use crate::folder::{TOKENIZER, TestFolder};

fn tokenizer() -> Tokenizer {
    Tokenizer::from_json(TOKENIZER.as_bytes(), 8).unwrap()
}

#[test]
fn encodes_raw_text_and_decodes_it_back() {
    let tokenizer = tokenizer();
    let text = "abba<|end|>ab";
    let ids = tokenizer.encode(text.as_bytes()).unwrap();
    assert_eq!(ids, [2, 1, 0, 3, 2]);
    assert_eq!(tokenizer.decode(&ids).unwrap(), text);
    assert!(tokenizer.encode(b"").unwrap().is_empty());
}

#[test]
fn ignores_truncation_and_padding_of_the_file() {
    let mut file: Value = serde_json::from_str(TOKENIZER).unwrap();
    file["truncation"] =
        json!({"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0});
    file["padding"] = json!({"strategy": {"Fixed": 9}, "direction": "Right",
        "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"});
    let tokenizer = Tokenizer::from_json(file.to_string().as_bytes(), 8).unwrap();
    assert_eq!(tokenizer.encode(b"abba").unwrap(), [2, 1, 0]);
}

#[test]
fn refuses_text_that_is_not_utf8_and_ids_without_entry() {
    let error = tokenizer().encode(b"ab\xffab").unwrap_err();
    assert_eq!(error.to_string(), "text is not valid UTF-8 at byte 2 of 5");
    assert_eq!(error.kind(), Kind::Malformed);
    let error = tokenizer().decode(&[0, 7]).unwrap_err();
    assert_eq!(error.to_string(), "token id 7 is not in the tokenizer");
}

#[test]
fn refuses_a_tokenizer_beyond_the_embedding() {
    let folder = TestFolder::valid();
    folder.write("tokenizer.json", TOKENIZER.replace("\"ab\": 2", "\"ab\": 8"));
    folder
        .assert_refused(Kind::Malformed, "tokenizer.json: token \"ab\" has id 8, vocab_size is 8");
    folder.write("tokenizer.json", "{}");
    let error = attest::model::Model::open(&folder.path()).unwrap_err();
    assert!(error.to_string().starts_with("tokenizer.json: "), "{error}");
}

#[test]
fn files_on_which_the_library_panics_are_malformed() {
    // (from, to, reason): each made tokenizers 0.23.2 panic instead of refuse.
    let cut = &TOKENIZER[..TOKENIZER.find("\"trim_offsets\"").unwrap()];
    let cases = [
        (cut.to_owned(), "cut inside the decoder"),
        (
            TOKENIZER.replace("{\"type\": \"NFC\"}", "{\"type\": \"NFC\", \"type\": \"NFD\"}"),
            "a key twice: JSON, but not of one reading",
        ),
        (TOKENIZER.replace("\"NFC\"", "\"Precompiled\""), "JSON, but no such normaliser"),
    ];
    for (file, reason) in cases {
        let error = Tokenizer::from_json(file.as_bytes(), 8).unwrap_err();
        assert_eq!(error.kind(), Kind::Malformed, "{reason}");
        assert!(error.to_string().starts_with("tokenizer.json: "), "{reason}: {error}");
    }
}

#[test]
fn qwen3_ids_are_those_of_the_python_binding() {
    let golden: Value = serde_json::from_str(include_str!("../data/qwen3_tokens.json")).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/models/qwen3/tokenizer.json");
    let Ok(file) = std::fs::read(&path) else {
        println!("skipped: {} is not there", path.display());
        return;
    };
    assert_eq!(golden["tokenizer_sha256"], sha256(&[&file]).to_string());
    let tokenizer = Tokenizer::from_json(&file, 151_936).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() > 40);
    for case in cases {
        let ids: Vec<u32> =
            case["ids"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect();
        let text = case["text"].as_str().unwrap();
        assert_eq!(tokenizer.encode(text.as_bytes()).unwrap(), ids, "{}", case["reason"]);
        assert_eq!(case["decoded"], tokenizer.decode(&ids).unwrap(), "{}", case["reason"]);
    }
}
