//! `attest catalog show`: listings of the crate, and files of anybody.

use crate::{Home, end, fails};

const LISTING: &str = include_str!("../../catalogs/h200-cublaslt-13.1-qwen3-4b.json");

#[test]
fn catalogues_are_shown_by_id_and_as_files() {
    let home = Home::empty();
    let ended = end(&mut home.attest(&["catalog", "show"]));
    assert_eq!((ended.exit, ended.stdout.lines().count()), (0, 5), "{}", ended.stdout);
    let id = "h200-cublaslt-13.1-qwen3-4b";
    let by_id = end(&mut home.attest(&["catalog", "show", id]));
    assert!(by_id.stdout.contains("split_k_workspace_f32"), "{}", by_id.stdout);
    home.write("l.json", LISTING);
    let as_file = end(&mut home.attest(&["catalog", "show", "l.json"]));
    assert_eq!((by_id.exit, &by_id.stdout), (0, &as_file.stdout));
    let rows = |m: &str| end(&mut home.attest(&["catalog", "show", id, "--m", m])).stdout;
    assert!(rows("1").contains("algorithm ") && !rows("1").contains("not listed"));
    assert_eq!(rows("4097").matches("not listed").count(), 12, "six weights, two choices");
    fails(&mut home.attest(&["catalog", "show", "mine"]), 2, &["no catalogue and no file"]);
}

#[test]
fn a_file_is_refused_or_shown_but_nothing_worse() {
    let home = Home::empty();
    let show = |text: &str| {
        home.write("l.json", text);
        home.attest(&["catalog", "show", "l.json"])
    };
    fails(&mut show("{}"), 4, &["l.json: it has no id"]);
    fails(&mut show("{"), 4, &["l.json: "]);
    let changed = |from: &str, to: &str| {
        let text = LISTING.replacen(from, to, 1);
        assert_ne!(text, LISTING, "{from}");
        text
    };
    let cut = changed("\"max_m\": 4096", "\"max_m\": 4095");
    fails(&mut show(&cut), 4, &["not ascending inside 1..=4095"]);
    // Counts beyond any sum of 64 bits, and an id that would move the cursor.
    let mut json: serde_json::Value = serde_json::from_str(LISTING).unwrap();
    let algorithm = &mut json["shapes"][0]["algorithms"];
    algorithm[0]["compared"]["outputs"] = u64::MAX.into();
    algorithm[1]["compared"]["outputs"] = u64::MAX.into();
    json["id"] = "\u{1b}[2Jmine".into();
    let ended = end(&mut show(&json.to_string()));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert!(ended.stdout.starts_with("\\u{1b}[2Jmine  6 weights"), "{}", ended.stdout);
}
