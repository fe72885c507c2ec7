use attest::model::weights::{OUTPUT, architecture};
use attest::model::{Config, Kind};
use serde_json::{Value, json};

use crate::folder::{TestFolder, config};

fn parse(config: &Value) -> Result<Config, String> {
    Config::from_json(config.to_string().as_bytes()).map_err(|e| e.to_string())
}

fn with(field: &str, value: Value) -> Value {
    let mut config = config();
    config[field] = value;
    config
}

fn without(fields: &[&str]) -> Value {
    let mut config = config();
    for field in fields {
        config.as_object_mut().unwrap().shift_remove(*field).unwrap();
    }
    config
}

#[test]
fn reads_every_size() {
    let config = parse(&config()).unwrap();
    assert_eq!((config.vocab_size, config.hidden_size, config.intermediate_size), (8, 128, 24));
    assert_eq!((config.num_hidden_layers, config.max_position_embeddings), (2, 64));
    assert_eq!((config.num_attention_heads, config.num_key_value_heads), (2, 1));
    assert_eq!((config.query_size(), config.key_value_size(), config.head_dim), (256, 128, 128));
    assert_eq!((config.rope_theta, config.tie_word_embeddings), (10_000, true));
    assert_eq!(config.eos_token_id, [2]);
}

/// `config.json` of Qwen3-4B, by its public description.
const QWEN3_4B: &str = r#"{
  "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
  "hidden_size": 2560, "initializer_range": 0.02, "intermediate_size": 9728,
  "max_position_embeddings": 40960, "max_window_layers": 36, "model_type": "qwen3",
  "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
  "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
  "use_cache": true, "use_sliding_window": false, "vocab_size": 151936
}"#;

#[test]
fn qwen3_4b_has_398_tensors_of_8_044_936_192_bytes() {
    let config = Config::from_json(QWEN3_4B.as_bytes()).unwrap();
    let tied = |(name, _): &(String, Vec<usize>)| name != OUTPUT;
    let tensors: Vec<_> = architecture(&config).filter(tied).collect();
    assert_eq!(tensors.len(), 36 * 11 + 2);
    let elements: usize = tensors.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
    assert_eq!(2 * elements, 8_044_936_192); // `total_size` of the published index
}

#[test]
fn epsilon_is_rounded_to_binary64_then_to_binary32() {
    // (text, bits of torch.tensor(x, dtype=float32), reason)
    let cases = [
        ("1e-06", 0x3586_37bd, "Qwen3's"),
        ("0.000001", 0x3586_37bd, "the same number otherwise spelled"),
        ("1e-05", 0x3727_c5ac, "Llama's"),
        ("1e-12", 0x2b8c_bccc, "small"),
        ("0.5", 0x3f00_0000, "exact"),
    ];
    for (text, bits, reason) in cases {
        let json = config().to_string().replace("1e-6", text).replace("1e-06", text);
        let config = Config::from_json(json.as_bytes()).unwrap();
        assert_eq!(config.rms_norm_eps.0, bits, "{reason}");
    }
    // 2^-1 + 2^-25 is half-way between two binary32: the last place of the
    // binary64 would decide.
    let error = parse(&with("rms_norm_eps", json!(0.500_000_029_802_322_4))).unwrap_err();
    assert!(error.contains("expected a decimal that is not half-way"), "{error}");
}

#[test]
fn accepts_what_transformers_5_writes() {
    let mut config = without(&["rope_theta", "rope_scaling", "torch_dtype"]);
    config["rope_parameters"] = json!({"rope_theta": 10000.0, "rope_type": "default"});
    config["dtype"] = json!("bfloat16");
    config["layer_types"] = json!(["full_attention", "full_attention"]);
    config["pad_token_id"] = json!(null);
    config["transformers_version"] = json!("5.9.0");
    assert_eq!(parse(&config).unwrap().rope_theta, 10_000);
}

#[test]
fn accepts_what_changes_no_bit() {
    // (field, value, reason)
    let cases = [
        ("use_cache", json!(false), "when keys are computed, not what they are"),
        ("sliding_window", json!(4096), "read only if use_sliding_window is true"),
        ("max_window_layers", json!(1), "likewise"),
        ("initializer_range", json!(0.5), "training only"),
        ("attention_dropout", json!(0), "zero, spelled as an integer"),
        ("rope_scaling", json!({"rope_type": "default"}), "plain rotary embedding"),
        ("rope_scaling", json!({"type": "default"}), "its older spelling"),
        ("eos_token_id", json!(null), "no end-of-text id"),
        ("eos_token_id", json!([1, 2]), "several"),
    ];
    for (field, value, reason) in cases {
        assert!(parse(&with(field, value)).is_ok(), "{field}: {reason}");
    }
}

#[test]
fn refuses_what_changes_bits_by_name_and_value() {
    // (field, value, message after "config.json: field ")
    let cases = [
        ("model_type", json!("qwen2"), r#"model_type is "qwen2", only "qwen3" is supported"#),
        ("hidden_act", json!("gelu"), r#"hidden_act is "gelu", only "silu" is supported"#),
        (
            "torch_dtype",
            json!("float16"),
            r#"torch_dtype is "float16", only "bfloat16" is supported"#,
        ),
        ("dtype", json!("float32"), r#"dtype is "float32", only "bfloat16" is supported"#),
        ("attention_bias", json!(true), "attention_bias is true, only false is supported"),
        ("attention_dropout", json!(0.1), "attention_dropout is 0.1, only 0 is supported"),
        ("use_sliding_window", json!(true), "use_sliding_window is true, only false is supported"),
        ("head_dim", json!(64), "head_dim is 64, only 128 is supported"),
        (
            "architectures",
            json!(["Other"]),
            r#"architectures is ["Other"], only ["Qwen3ForCausalLM"] is supported"#,
        ),
        (
            "layer_types",
            json!(["full_attention", "sliding_attention"]),
            r#"layer_types is ["full_attention","sliding_attention"], only a list of "full_attention" is supported"#,
        ),
        (
            "rope_scaling",
            json!({"rope_type": "yarn", "factor": 4.0}),
            r#"rope_scaling.rope_type is "yarn", only "default" is supported"#,
        ),
        (
            "rope_parameters",
            json!({"rope_type": "default", "partial_rotary_factor": 0.5}),
            "rope_parameters.partial_rotary_factor (value 0.5) is not understood",
        ),
        (
            "partial_rotary_factor",
            json!(0.5),
            "partial_rotary_factor (value 0.5) is not understood",
        ),
        (
            "quantization_config",
            json!({"bits": 4}),
            r#"quantization_config is {"bits":4}, only bf16 without quantisation is supported"#,
        ),
        (
            "quantization_config",
            json!({"bits": 4, "group_size": 128, "quant_method": "gptq"}),
            r#"quantization_config.quant_method is "gptq", only bf16 without quantisation is supported"#,
        ),
        (
            "compression_config",
            json!({"quant_method": "compressed-tensors"}),
            r#"compression_config.quant_method is "compressed-tensors", only bf16 without quantisation is supported"#,
        ),
        ("logit_scale", json!(null), "logit_scale (value null) is not understood"),
        // Sizes for which there is no measured recipe, or no room.
        (
            "hidden_size",
            json!(130),
            "hidden_size is 130, only a multiple of 4 from 128 on is supported",
        ),
        (
            "hidden_size",
            json!(124),
            "hidden_size is 124, only a multiple of 4 from 128 on is supported",
        ),
        (
            "rope_theta",
            json!(500_000),
            "rope_theta is 500000, only 10000, 1000000, 5000000 is supported",
        ),
        (
            "num_hidden_layers",
            json!(1_000_000_000),
            "num_hidden_layers is 1000000000, only a size up to 1024 is supported",
        ),
        (
            "num_attention_heads",
            json!(8193),
            "num_attention_heads is 8193, only a size up to 8192 is supported",
        ),
        (
            "intermediate_size",
            json!(1_048_577),
            "intermediate_size is 1048577, only a size up to 1048576 is supported",
        ),
        (
            "vocab_size",
            json!(u64::MAX),
            "vocab_size is 18446744073709551615, only a size up to 16777216 is supported",
        ),
        (
            "max_position_embeddings",
            json!(16_777_217),
            "max_position_embeddings is 16777217, only a size up to 16777216 is supported",
        ),
    ];
    for (field, value, message) in cases {
        let folder = TestFolder::valid();
        folder.set(field, value);
        folder.assert_refused(Kind::Incomplete, &format!("config.json: field {message}"));
    }
}

#[test]
fn refuses_impossible_values() {
    // (field, value, message after "config.json: field ")
    let sizes = "expected a whole number from 1 on";
    let cases = [
        ("hidden_size", json!(0), format!("hidden_size is 0, {sizes}")),
        ("hidden_size", json!(-16), format!("hidden_size is -16, {sizes}")),
        ("hidden_size", json!("16"), format!("hidden_size is \"16\", {sizes}")),
        ("vocab_size", json!(2.5), format!("vocab_size is 2.5, {sizes}")),
        (
            "num_key_value_heads",
            json!(3),
            "num_key_value_heads is 3, expected a divisor of num_attention_heads 2".into(),
        ),
        (
            "tie_word_embeddings",
            json!(1),
            "tie_word_embeddings is 1, expected true or false".into(),
        ),
        ("rms_norm_eps", json!(0), "rms_norm_eps is 0, expected a number between 0 and 1".into()),
        (
            "rms_norm_eps",
            json!("1e-6"),
            "rms_norm_eps is \"1e-6\", expected a number between 0 and 1".into(),
        ),
        (
            "rope_theta",
            json!(10000.5),
            "rope_theta is 10000.5, expected a whole number above 1".into(),
        ),
        (
            "rope_parameters",
            json!({"rope_theta": 5}),
            "rope_parameters.rope_theta is 5, expected 10000 as in another field".into(),
        ),
        (
            "rope_scaling",
            json!("yarn"),
            "rope_scaling is \"yarn\", expected an object or null".into(),
        ),
        ("eos_token_id", json!(8), "eos_token_id is 8, expected ids below vocab_size 8".into()),
        (
            "eos_token_id",
            json!("2"),
            "eos_token_id is \"2\", expected a token id, or a list of them".into(),
        ),
        (
            "layer_types",
            json!(["full_attention"]),
            "layer_types is [\"full_attention\"], expected one entry for each of 2 layers".into(),
        ),
    ];
    for (field, value, message) in cases {
        let folder = TestFolder::valid();
        folder.set(field, value);
        folder.assert_refused(Kind::Malformed, &format!("config.json: field {message}"));
    }
}

#[test]
fn refuses_a_missing_field() {
    for field in [
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "rms_norm_eps",
        "rope_theta",
        "max_position_embeddings",
        "tie_word_embeddings",
        "hidden_act",
        "model_type",
    ] {
        let folder = TestFolder::valid();
        folder.unset(field);
        folder.assert_refused(Kind::Malformed, &format!("config.json: field {field} is missing"));
    }
    let error = parse(&without(&["torch_dtype"])).unwrap_err();
    assert_eq!(error, "config.json: field dtype is missing");
}

#[test]
fn refuses_a_repeated_key_and_broken_json() {
    let folder = TestFolder::valid();
    let text = config().to_string().replacen('{', r#"{"vocab_size": 8, "#, 1);
    folder.write("config.json", &text);
    let error = attest::model::Model::open(&folder.path()).unwrap_err();
    assert_eq!(error.kind(), Kind::Malformed);
    let message = error.to_string();
    assert!(
        message.starts_with(r#"config.json is not valid JSON: key "vocab_size" appears twice at"#),
        "{message}"
    );

    folder.write("config.json", "{");
    folder.assert_refused(
        Kind::Malformed,
        "config.json is not valid JSON: EOF while parsing an object at line 1 column 1",
    );
}

#[test]
fn generation_config_gives_the_stop_rule_and_is_otherwise_recorded() {
    // (text or none, end-of-text ids, recorded, reason)
    let cases = [
        (
            Some(r#"{"top_p": 0.95, "eos_token_id": [3, 1], "do_sample": true}"#),
            vec![3, 1],
            r#"{"do_sample":true,"top_p":0.95}"#,
            "a list; keys sorted",
        ),
        (
            Some(r#"{"eos_token_id": 3, "b": {"d": 1, "c": 1e-3}}"#),
            vec![3],
            r#"{"b":{"c":0.001,"d":1}}"#,
            "one id; inner keys sorted",
        ),
        (Some("{}"), vec![2], "{}", "config.json's id where the file names none"),
        (None, vec![2], "{}", "config.json's id where there is no file"),
    ];
    for (text, ids, recorded, reason) in cases {
        let folder = TestFolder::valid();
        match text {
            Some(text) => folder.write("generation_config.json", text),
            None => folder.remove("generation_config.json"),
        }
        let model = folder.open();
        assert_eq!(model.generation().eos_token_id, ids, "{reason}");
        assert_eq!(model.generation().recorded, recorded, "{reason}");
        assert!(model.generation().ends_with(ids[0]) && !model.generation().ends_with(0));
        assert_eq!(model.manifest().file("generation_config.json").is_some(), text.is_some());
    }
    let folder = TestFolder::valid();
    folder.write("generation_config.json", r#"{"eos_token_id": [1, 8]}"#);
    folder.assert_refused(
        Kind::Malformed,
        "generation_config.json: field eos_token_id is [1,8], expected ids below vocab_size 8",
    );
}

#[test]
fn fields_that_change_greedy_text_elsewhere_are_named() {
    // (field, value, is named, reason)
    let cases = [
        ("repetition_penalty", json!(1.1), true, "other logits"),
        ("repetition_penalty", json!(1.0), false, "off"),
        ("repetition_penalty", json!(1), false, "off, spelled as an integer"),
        ("no_repeat_ngram_size", json!(3), true, "forbids tokens"),
        ("no_repeat_ngram_size", json!(0), false, "off"),
        ("suppress_tokens", json!([1, 2]), true, "forbids tokens"),
        ("suppress_tokens", json!([]), false, "no tokens"),
        ("suppress_tokens", json!(null), false, "off"),
        ("begin_suppress_tokens", json!([1]), true, "forbids first tokens"),
        ("bad_words_ids", json!([[1]]), true, "forbids tokens"),
        ("sequence_bias", json!({}), false, "no bias"),
        ("forced_bos_token_id", json!(0), true, "0 is a token, not off"),
        ("forced_eos_token_id", json!(2), true, "another last token"),
        ("exponential_decay_length_penalty", json!([5, 1.2]), true, "ends earlier"),
        ("encoder_repetition_penalty", json!(0.9), true, "other logits"),
        ("min_length", json!(4), true, "ends later"),
        ("min_new_tokens", json!(4), true, "ends later"),
        ("num_beams", json!(4), true, "no greedy search"),
        ("num_beams", json!(1), false, "greedy search"),
        ("stop_strings", json!("end"), true, "ends earlier"),
        ("temperature", json!(0.6), false, "sampling only"),
        ("top_k", json!(20), false, "sampling only"),
        ("do_sample", json!(true), false, "the choice to sample at all"),
    ];
    for (field, value, named, reason) in cases {
        let folder = TestFolder::valid();
        folder.write("generation_config.json", json!({ field: value }).to_string());
        let warning = format!(
            "generation_config.json sets {field} {value}: recorded, not applied; \
             greedy text of other tools may differ"
        );
        let expected = if named { vec![warning] } else { vec![] };
        assert_eq!(folder.open().warnings(), expected, "{field}: {reason}");
    }
    let folder = TestFolder::valid();
    folder.write("generation_config.json", r#"{"min_length": 1, "top_p": 0.9, "num_beams": 2}"#);
    assert_eq!(
        folder.open().warnings(),
        ["generation_config.json sets min_length 1, num_beams 2: recorded, not applied; \
          greedy text of other tools may differ"]
    );
}
