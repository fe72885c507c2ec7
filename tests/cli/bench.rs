//! `attest bench`, on sizes that take no time: what a report has, and that what
//! it was asked decides it.

use serde_json::Value;

use crate::{Ended, Home, end, fails, text, tiny_model};

/// Runs a measurement as short as possible and requires success.
fn bench(args: &[&str]) -> Ended {
    // A forward pass is long enough to be run once.
    let short: &[_] = if args[0] == "forward" { &[] } else { &["--rounds", "1", "--seconds", "0"] };
    let ended = end(Home::empty().attest(&["bench"]).args(args).args(short));
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    ended
}

/// The same as JSON, with the fields of every report checked.
fn report(args: &[&str]) -> Value {
    let json = bench(&[args, &["--json"]].concat()).json();
    assert_eq!(json["schema"], format!("attest-bench-{}/1", args[0]));
    assert_eq!(json["attest"], env!("CARGO_PKG_VERSION"));
    let machine = &json["machine"];
    for field in ["cpu", "simd"] {
        assert!(machine[field].is_string(), "{field}: {json}");
    }
    for field in ["processors", "threads"] {
        assert!(machine[field].as_u64() > Some(0), "{field}: {json}");
    }
    assert!(machine["features"].is_array(), "{json}");
    assert!(machine["load"].is_f64() || !cfg!(target_os = "linux"), "{json}");
    json
}

/// Requires numbers, best and median.
fn figures(value: &Value, name: &str) {
    for figure in ["best", "median"] {
        assert!(value[name][figure].is_f64(), "{name}.{figure}: {value}");
    }
}

#[test]
fn gemm_reports_the_portable_form_on_request() {
    let json = report(&["gemm", "--shape", "3x70x40", "--simd", "portable"]);
    assert_eq!(json["shapes"][0]["forms"][0]["simd"], "portable");
}

#[test]
fn gemm_reports_every_shape_profile_and_form() {
    let json = report(&["gemm", "--shape", "3x70x40", "--shape", "1x5x16"]);
    let shapes = json["shapes"].as_array().unwrap();
    assert_eq!(shapes.len(), 2, "{json}");
    for (shape, multiply_adds) in shapes.iter().zip([8400, 80]) {
        assert_eq!(shape["multiply_adds"], multiply_adds);
        let forms = shape["forms"].as_array().unwrap();
        // The portable form is measured where it is the widest, or on request.
        assert!(forms.len() == 1 || forms.iter().all(|form| form["simd"] != "portable"));
        assert!(!forms.is_empty());
        for form in forms {
            figures(form, "sgemm_gmac_per_s");
            figures(form, "ampere_to_hopper");
            let profiles = form["profiles"].as_array().unwrap();
            let names: Vec<_> = profiles.iter().map(|p| p["profile"].as_str().unwrap()).collect();
            assert_eq!(names, ["h200", "a100"]);
            for profile in profiles {
                for name in
                    ["one_core_gmac_per_s", "all_cores_gmac_per_s", "scaling", "ratio_to_sgemm"]
                {
                    figures(profile, name);
                }
                assert!(profile["compared_with_scalar_text"].as_u64() > Some(0), "{profile}");
            }
        }
    }
    let one = ["gemm", "--shape", "2x16x16", "--profile", "a100", "--simd", "portable"];
    let json = report(&one);
    let forms = json["shapes"][0]["forms"].as_array().unwrap();
    assert_eq!((forms.len(), &forms[0]["simd"]), (1, &Value::from("portable")));
    assert_eq!(forms[0]["ampere_to_hopper"], Value::Null);
    let text = bench(&one).stdout;
    for word in ["2x16x16", "a100", "portable", "checked"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn forward_reports_time_by_operation_and_memory() {
    let model = tiny_model();
    let model = text(&model);
    let json = report(&["forward", "--model", model, "--prompt-tokens", "3", "--generate", "2"]);
    assert_eq!(json["positions"], 4);
    assert_eq!(json["logits_rows"], 2);
    assert_eq!(json["logits"], "last");
    for field in ["seconds", "seconds_per_position", "gmac_per_s"] {
        assert!(json[field].is_f64(), "{field}: {json}");
    }
    for field in ["checked_steps", "checked_outputs", "multiply_adds"] {
        assert!(json[field].as_u64() > Some(0), "{field}: {json}");
    }
    let operations = json["operations"].as_array().unwrap();
    assert!(operations.iter().any(|op| op["operation"] == "attention"), "{json}");
    for operation in operations {
        assert!(operation["seconds"].is_f64() && operation["share"].is_f64(), "{operation}");
    }
    if cfg!(target_os = "linux") {
        for field in ["anonymous_before", "anonymous_peak", "mapped_files"] {
            assert!(json["memory"][field].as_u64() > Some(0), "{field}: {json}");
        }
    }
    let all = ["forward", "--model", model, "--prompt-tokens", "3", "--logits", "all"];
    assert_eq!(report(&all)["logits_rows"], 3);
    let text = bench(&all).stdout;
    for word in ["products of the layers", "SiLU", "0 bits differ", "MiB"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn attention_reports_a_prompt_and_one_row() {
    let args = ["attention", "--length", "70", "--heads", "4"];
    let json = report(&args);
    assert_eq!(json["heads"], serde_json::json!({ "query": 4, "key_value": 1 }));
    let lengths = json["lengths"].as_array().unwrap();
    assert_eq!(lengths.len(), 2, "{json}");
    for (length, rows) in lengths.iter().zip([70, 1]) {
        assert_eq!((&length["length"], &length["rows"]), (&70.into(), &rows.into()));
        for name in ["one_core_seconds", "one_core_gmac_per_s", "all_cores_gmac_per_s", "scaling"] {
            figures(length, name);
        }
        assert!(length["compared_with_scalar_text"].as_u64() > Some(0), "{length}");
    }
    assert!(bench(&args).stdout.contains("checked: 16 heads"));
}

#[test]
fn mufu_reports_every_function() {
    let args = ["mufu", "--values", "100"];
    let json = report(&args);
    let functions = json["functions"].as_array().unwrap();
    let names: Vec<_> = functions.iter().map(|f| f["function"].as_str().unwrap()).collect();
    for name in ["EX2", "RCP", "RSQ", "LG2", "expf", "SiLU times up"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for function in functions {
        figures(function, "scalar_ns_per_value");
        for slice in function["slices"].as_array().unwrap() {
            figures(slice, "ns_per_value");
            figures(slice, "times_scalar");
            assert_eq!(slice["compared_with_scalar_text"], 100, "{slice}");
        }
    }
    assert!(bench(&args).stdout.contains("EX2"));
}

#[test]
fn hash_reports_one_core_and_all() {
    let args = ["hash", "--mib", "1"];
    let json = report(&args);
    assert_eq!(json["bytes"], 1 << 20);
    for name in ["one_core_gb_per_s", "all_cores_gb_per_s", "scaling"] {
        figures(&json, name);
    }
    assert!(bench(&args).stdout.contains("GB/s"));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let home = Home::empty();
    // (arguments, words of the sentence)
    let tiny = tiny_model();
    let cases: [(&[&str], &[&str]); 5] = [
        (&["gemm", "--shape", "2x0x16"], &["shape 2x0x16"]),
        (&["gemm", "--profile", "h9000", "--shape", "1x1x1"], &["profile h9000"]),
        (&["gemm", "--simd", "avx1"], &["avx1", "portable"]),
        (&["attention", "--profile", "h9000", "--length", "1"], &["profile h9000"]),
        (
            &["forward", "--model", text(&tiny), "--prompt-tokens", "1024"],
            &["1025 tokens", "context of 1024"],
        ),
    ];
    for (args, words) in cases {
        fails(home.attest(&["bench"]).args(args), 2, words);
    }
}
