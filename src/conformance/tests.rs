use std::path::Path;

use super::*;

/// A file of one record: 1·2 + … through Hopper's bf16 k16, two columns.
fn sample(header_edit: (&str, &str), result: u32) -> Vec<u8> {
    let header = concat!(
        r#"{"name":"sample","a":"bf16","b":"bf16","c":"f32","d":"f32","k":16,"n":1,"#,
        r#""record_bytes":77,"fields":[["fam","u8",1],["a","u16",16],["b","u16",16],"#,
        r#"["c","u32",1],["d","u32",2]],"families":["hand"],"columns":["#,
        r#"{"instr":"wgmma","arch":"Hopper","shape":"m64n8k16.f32","F":25,"L":16,"#,
        r#""rho":"RZ-FP32","e_zero":-133},"#,
        r#"{"instr":"mma.sync","arch":"Volta","shape":"m8n8k16.f32"}]}"#
    );
    assert!(header.contains(header_edit.0));
    let mut bytes = header.replacen(header_edit.0, header_edit.1, 1).into_bytes();
    bytes.push(b'\n');
    bytes.push(0);
    for (first, rest) in [(0x3f80u16, 0u16), (0x4000, 0)] {
        bytes.extend(first.to_le_bytes());
        (0..15).for_each(|_| bytes.extend(rest.to_le_bytes()));
    }
    bytes.extend(0x3f80_0000u32.to_le_bytes());
    bytes.extend(result.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes
}

fn run(bytes: &[u8]) -> Result<FileReport, ConformanceError> {
    run_bytes(Path::new("sample.bin"), bytes)
}

#[test]
fn compares_what_it_covers_and_names_what_it_does_not() {
    let report = run(&sample(("", ""), 0x4040_0000)).unwrap();
    assert_eq!(
        report.columns[0].outcome,
        Outcome::Compared { profile: "h200".to_owned(), cases: 1, differences: 0, first: None }
    );
    let Outcome::NotCovered { reason } = &report.columns[1].outcome else {
        panic!("Volta has no bf16");
    };
    assert_eq!(reason, "profile v100 has no mma.sync of bf16 x bf16 + f32 -> f32, k 16");
}

#[test]
fn a_difference_names_record_family_and_both_patterns() {
    let report = run(&sample(("", ""), 0x4040_0001)).unwrap();
    let Outcome::Compared { differences, first, .. } = &report.columns[0].outcome else {
        panic!("column 0 is covered");
    };
    assert_eq!(*differences, 1);
    let expected = Difference {
        record: 0,
        family: Some("hand".to_owned()),
        expected: "40400001".to_owned(),
        computed: "40400000".to_owned(),
    };
    assert_eq!(first.as_ref(), Some(&expected));
}

#[test]
fn a_parameter_that_contradicts_the_profile_is_an_error() {
    // (from, to, message)
    let cases = [
        ("\"F\":25", "\"F\":24", "the file says F = 24, profile h200 says 25"),
        ("\"L\":16", "\"L\":8", "the file says L = 8, profile h200 says 16"),
        ("RZ-FP32", "RNE-FP32", "the file says rho = RNE-FP32, profile h200 says RZ-FP32"),
        ("-133", "-126", "the file says e_zero = -126, profile h200 says -133"),
        ("\"F\":25", "\"G\":16", "the file says G = 16, profile h200 says 1"),
    ];
    for (from, to, message) in cases {
        let error = run(&sample((from, to), 0)).unwrap_err().to_string();
        assert_eq!(error, format!("sample.bin, column 0: {message}"));
    }
}

#[test]
fn malformed_headers_are_refused_by_name() {
    // (from, to, part of the message)
    let cases = [
        ("\"name\"", "\"nome\"", "unknown field `nome`"),
        ("\"a\":\"bf16\"", "\"a\":\"bf17\"", "did not match"),
        ("\"n\":1", "\"n\":2", "2 records of 77 bytes are 154 bytes, the file has 77"),
        ("\"n\":1", "\"n\":0", "it has no records"),
        ("\"n\":1", "\"n\":-1", "header"),
        ("\"n\":1", "\"n\":18446744073709551615", "18446744073709551615 records of 77 bytes"),
        ("\"record_bytes\":77", "\"record_bytes\":76", "fields take 77 bytes, record_bytes is 76"),
        ("[\"fam\",\"u8\",1]", "[\"fum\",\"u8\",1]", "field fum is not understood"),
        ("[\"fam\",\"u8\",1]", "[\"a\",\"u8\",1]", "field a occurs twice"),
        ("[\"a\",\"u16\",16]", "[\"a\",\"u8\",32]", "field a is 32 of 1 bytes, expected 16 of 2"),
        ("[\"a\",\"u16\",16]", "[\"a\",\"u16\",9223372036854775808]", "field a is too long"),
        ("[\"d\",\"u32\",2]", "[\"d\",\"u32\",1],[\"e\",\"u32\",1]", "field d is 1 of 4 bytes"),
        ("[\"hand\"]", "[]", "record 0 is of unnamed family 0"),
        ("\"k\":16", "\"k\":0", "k is 0"),
        ("\"k\":16", "\"k\":16,\"scale_block\":16", "scale_type and scale_block come together"),
    ];
    for (from, to, part) in cases {
        let error = run(&sample((from, to), 0)).unwrap_err().to_string();
        assert!(error.contains(part), "{from} -> {to}: {error}");
    }
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = sample(("", ""), 0);
    for end in 0..bytes.len() {
        assert!(
            matches!(run(&bytes[..end]), Err(ConformanceError::Malformed { .. })),
            "cut at {end}"
        );
    }
}

#[test]
fn an_unknown_instruction_is_not_covered() {
    let report = run(&sample(("\"wgmma\"", "\"mfma\""), 0)).unwrap();
    assert!(matches!(report.columns[0].outcome, Outcome::NotCovered { .. }));
}
