//! `attest model digest`: of a model, and of a folder that is none.

use std::fs;

use attest::model::Model;
use attest::num::sha256;
use attest::transcript::capture;

use crate::{Home, end, fails, text, tiny_model};

#[test]
fn the_example_has_the_root_of_the_reference_library() {
    // Printed by `tests/interop/oms_roots.py` with model-signing 1.1.1.
    let root = "9b80998e2678bd8dfc59d7a9ab55bcbe14336c0201e83c1f1c16f7bb437e2bb0";
    let (home, model) = (Home::empty(), tiny_model());
    let said = end(&mut home.attest(&["model", "digest", text(&model)]));
    assert_eq!((said.exit, said.stderr.as_str()), (0, ""));
    assert_eq!(said.stdout.lines().next(), Some(format!("sha256:{root}").as_str()));

    let json = end(&mut home.attest(&["model", "digest", "--json", text(&model)])).json();
    assert_eq!(json["oms_root"], root);
    let manifest = capture::manifest(&Model::open(&model).unwrap());
    assert_eq!(json["manifest_digest"], manifest.digest.to_string());
    assert!(said.stdout.contains(&manifest.digest.to_string()), "{}", said.stdout);
    let (all, defining) = (json["oms_files"].as_array(), json["manifest_files"].as_array());
    let (all, defining) = (all.unwrap(), defining.unwrap());
    assert_eq!((all.len(), defining.len()), (5, 4), "one file defines nothing");
    for file in all {
        let bytes = fs::read(model.join(file["path"].as_str().unwrap())).unwrap();
        assert_eq!(file["sha256"], sha256(&[&bytes]).to_string(), "{file}");
    }
    for file in defining {
        let found = all.iter().find(|other| other["path"] == file["path"]).unwrap();
        assert_eq!(found["sha256"], file["sha256"]);
    }
    assert!(json["no_manifest"].is_null());
}

#[test]
fn a_folder_that_is_no_model_has_a_root_alone() {
    let home = Home::empty();
    fs::create_dir(home.path("m")).unwrap();
    home.write("m/b", "2");
    home.write("m/a", "1");
    home.write("m/model.sig", "left out");
    let ended = end(&mut home.attest(&["model", "digest", "m", "--json"]));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let json = ended.json();
    assert_eq!(json["oms_root"], sha256(&[&sha256(&[b"1"]).0, &sha256(&[b"2"]).0]).to_string());
    assert!(json["manifest_digest"].is_null() && json["manifest_files"].is_null());
    assert!(json["no_manifest"].as_str().unwrap().contains("config.json is missing"), "{json}");
    let said = end(&mut home.attest(&["model", "digest", "m"])).stdout;
    assert!(said.contains("\nmanifest none, no model that this program runs: "), "{said}");
    fails(&mut home.attest(&["model", "digest", "absent"]), 5, &["absent"]);
}
