//! `attest bench`, on sizes that take no time: what a report has, and that what
//! it was asked decides it.

use serde_json::Value;

use crate::{Ended, Home, end, fails};

/// Runs a measurement as short as possible and requires success.
fn bench(args: &[&str]) -> Ended {
    let short = ["--rounds", "1", "--seconds", "0"];
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
    json
}

/// Requires numbers, best and median.
fn figures(value: &Value, name: &str) {
    for figure in ["best", "median"] {
        assert!(value[name][figure].is_f64(), "{name}.{figure}: {value}");
    }
}

#[test]
fn gemm_reports_every_shape_profile_and_form() {
    let json = report(&["gemm", "--shape", "3x70x40", "--shape", "1x5x16"]);
    let shapes = json["shapes"].as_array().unwrap();
    assert_eq!(shapes.len(), 2, "{json}");
    for (shape, multiply_adds) in shapes.iter().zip([8400, 80]) {
        assert_eq!(shape["multiply_adds"], multiply_adds);
        figures(shape, "sgemm_gmac_per_s");
        let forms = shape["forms"].as_array().unwrap();
        let profiles: Vec<_> = forms.iter().map(|form| form["profile"].as_str()).collect();
        assert_eq!(profiles.first(), Some(&Some("h200")));
        assert_eq!(profiles.last(), Some(&Some("a100")));
        for form in forms {
            for name in ["one_core_gmac_per_s", "all_cores_gmac_per_s", "scaling", "ratio_to_sgemm"]
            {
                figures(form, name);
            }
            assert!(form["compared_with_scalar_text"].as_u64() > Some(0), "{form}");
        }
        let ratios = shape["ampere_to_hopper"].as_array().unwrap();
        assert_eq!(ratios.len(), forms.len() / 2);
    }
    let one = ["gemm", "--shape", "2x16x16", "--profile", "a100", "--simd", "portable"];
    let json = report(&one);
    let forms = json["shapes"][0]["forms"].as_array().unwrap();
    assert_eq!((forms.len(), &forms[0]["simd"]), (1, &Value::from("portable")));
    let text = bench(&one).stdout;
    for word in ["2x16x16", "a100", "portable", "checked"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let home = Home::empty();
    // (arguments, words of the sentence)
    let cases: [(&[&str], &[&str]); 3] = [
        (&["gemm", "--shape", "2x0x16"], &["shape 2x0x16"]),
        (&["gemm", "--profile", "h9000", "--shape", "1x1x1"], &["profile h9000"]),
        (&["gemm", "--simd", "avx1"], &["avx1", "portable"]),
    ];
    for (args, words) in cases {
        fails(home.attest(&["bench"]).args(args), 2, words);
    }
}
