//! Tests of both forms of catalogues.

use super::*;

const UNSPLIT: Choice = Choice::Unsplit;

#[test]
fn every_shipped_catalogue_is_well_formed() {
    for id in Catalog::ids() {
        let catalog = Catalog::by_id(id).unwrap();
        assert_eq!(catalog.id(), id);
        assert!(catalog.preference(Choice::Unsplit).is_some());
    }
    let catalog = Catalog::by_id("h200-cublaslt-13.1").unwrap();
    assert_eq!(catalog.covers("NVIDIA H200", "13.0", "130100"), Ok(()));
    let measured = "; catalogue h200-cublaslt-13.1 was measured with ";
    for (gpu, nvrtc, library, found, known) in [
        ("NVIDIA H100", "13.0", "130100", "the GPU is \"NVIDIA H100\"", "NVIDIA H200"),
        ("NVIDIA H200", "13.1", "130100", "NVRTC is \"13.1\"", "13.0"),
        ("NVIDIA H200", "13.0", "130200", "cuBLASLt is \"130200\"", "130100"),
        ("NVIDIA H200", "13.0", "+130100", "cuBLASLt is \"+130100\"", "130100"),
        ("NVIDIA H100", "13.1", "130200", "the GPU is \"NVIDIA H100\"", "NVIDIA H200"),
    ] {
        let sentence = catalog.covers(gpu, nvrtc, library).unwrap_err();
        assert_eq!(sentence, format!("{found}{measured}{known}"));
    }
    assert_eq!(catalog.preference(Choice::Unsplit).unwrap().reduction_scheme_mask, Some(0));
    assert_eq!(catalog.preference(Choice::Stock), None);
}

#[test]
fn refuses_what_it_does_not_understand() {
    let (id, good) = CATALOGS[0];
    // (text to replace, replacement, words of the error)
    let cases = [
        ("\"id\": \"h200-", "\"id\": \"h100-", "calls itself h100-cublaslt-13.1"),
        ("cublasLt\"", "cutlass\"", "library cutlass is not cublasLt"),
        ("[130100]", "[]", "no library version"),
        ("\"profile\"", "\"gpu\"", "unknown field `gpu`"),
        ("single_walk", "split_k", "unknown variant `split_k`"),
        ("\"candidates\": 32", "\"candidates\": 0", "0 candidates"),
    ];
    for (from, to, words) in cases {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let error = Catalog::parse(id, &text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let unknown = Catalog::by_id("t4").unwrap_err().to_string();
    assert!(
        unknown.starts_with("no dispatch catalogue t4; known: h200-cublaslt-13.1, "),
        "{unknown}"
    );
}

fn algorithm(id: u32, split_k: u32, reduction_scheme: u32) -> Attributes {
    Attributes {
        id,
        tile: 393,
        stages: 35,
        split_k,
        reduction_scheme,
        swizzle: 0,
        custom_option: 0,
        inner_shape: 0,
        cluster_shape: 2,
    }
}

#[test]
fn only_what_the_catalogue_lists_has_a_recipe() {
    let catalog = Catalog::by_id("h200-cublaslt-13.1").unwrap();
    // (id, split, reduction scheme, recipe, reason)
    let cases = [
        (66, 1, 0, Some(Recipe::SingleWalk), "nvjet without split"),
        (66, 0, 0, Some(Recipe::SingleWalk), "0 slices also means no split"),
        (66, 2, 2, None, "split-K is not in this catalogue"),
        (66, 2, 0, None, "a split without a reduction is no algorithm we know"),
        (66, 1, 2, None, "a reduction without a split, likewise"),
        (41, 1, 0, None, "id 41 was never measured"),
    ];
    for (id, split_k, scheme, recipe, reason) in cases {
        let found = catalog.recipe_of(UNSPLIT, &algorithm(id, split_k, scheme), (17, 256, 256));
        assert_eq!(found, recipe, "{reason}");
    }
}

#[test]
fn nothing_is_known_beyond_the_measured_sizes() {
    let catalog = Catalog::by_id("h200-cublaslt-13.1").unwrap();
    let known = |m, n, k| catalog.recipe_of(UNSPLIT, &algorithm(66, 1, 0), (m, n, k)).is_some();
    assert!(known(4096, 151_936, 9728));
    let sentence = catalog.why_unknown(UNSPLIT, &algorithm(66, 1, 0), (1, 4096, 12_288));
    assert_eq!(sentence, "algorithm 66 was measured up to k=9728, the product has k=12288");
    assert!(!known(4097, 128, 128) && !known(1, 151_937, 128) && !known(1, 128, 9792));
}

#[test]
fn a_tail_of_k_was_never_measured() {
    let catalog = Catalog::by_id("h200-cublaslt-13.1").unwrap();
    // (k, terms after the last tile)
    for (k, tail) in [(1, 1), (63, 63), (100, 36), (4088, 56)] {
        let (asked, size) = (algorithm(66, 1, 0), (1, 128, k));
        assert_eq!(catalog.recipe_of(UNSPLIT, &asked, size), None, "k={k}");
        let sentence = format!(
            "algorithm 66 was measured with multiples of 64 as k, the product has k={k}: the \
             library can lose the last {tail} terms"
        );
        assert_eq!(catalog.why_unknown(UNSPLIT, &asked, size), sentence);
    }
    assert!(catalog.recipe_of(UNSPLIT, &algorithm(66, 1, 0), (1, 128, 64)).is_some());
}

/// A listing of one weight: rows 1 to 4 and 6 to 9.
const LISTING: &str = r#"{
    "format": 2, "id": "test", "profile": "h200", "gpus": ["NVIDIA H200"], "nvrtc": ["13.0"],
    "library": { "name": "cublasLt", "versions": [130100] }, "product": "bf16",
    "workspace_bytes": 1024, "max_m": 9,
    "measured": { "by": "attest", "driver": "1", "cuda_driver": "1", "unix_time": 1, "data": "" },
    "shapes": [{ "n": 64, "k": 256, "weights": ["o_proj"],
        "algorithms": [
            { "attributes": { "id": 41, "tile": 393, "stages": 35, "split_k": 1, "reduction_scheme": 0,
                "swizzle": 0, "custom_option": 0, "inner_shape": 0, "cluster_shape": 2 },
              "recipe": "single_walk", "compared": { "m": [1, 3, 4, 6, 9], "outputs": 64, "accumulators": 64,
                "repeated": 64, "differing": 0 } },
            { "attributes": { "id": 66, "tile": 393, "stages": 35, "split_k": 2, "reduction_scheme": 2,
                "swizzle": 0, "custom_option": 0, "inner_shape": 0, "cluster_shape": 2 },
              "recipe": "split_k_workspace_f32(slices=2,k_tile=64)", "compared": { "m": [1, 2],
                "outputs": 64, "accumulators": 64, "repeated": 64, "differing": 0 } }],
        "unsplit": [[1, 4, 0], [6, 9, 0]], "stock": [[1, 2, 1], [3, 9, 0]] }]
}"#;

#[test]
fn a_listing_knows_its_products_and_no_other() {
    let catalog = Catalog::parse("test", LISTING).unwrap();
    let split = Recipe::SplitKWorkspaceF32 { slices: 2 };
    let (unsplit, stock) = (algorithm(41, 1, 0), algorithm(66, 2, 2));
    // (choice, descriptor, m, recipe, reason)
    let cases = [
        (UNSPLIT, unsplit, 1, Some(Recipe::SingleWalk), "listed"),
        (UNSPLIT, unsplit, 9, Some(Recipe::SingleWalk), "listed, the last"),
        (UNSPLIT, unsplit, 5, None, "a gap"),
        (UNSPLIT, unsplit, 10, None, "past the end"),
        (UNSPLIT, stock, 1, None, "split where none may be"),
        (Choice::Stock, stock, 2, Some(split), "the library's own choice"),
        (Choice::Stock, stock, 3, None, "another is listed for these rows"),
        (Choice::Stock, unsplit, 3, Some(Recipe::SingleWalk), "it may prefer no split"),
    ];
    for (choice, descriptor, m, recipe, reason) in cases {
        assert_eq!(catalog.recipe_of(choice, &descriptor, (m, 64, 256)), recipe, "{reason}");
    }
    assert_eq!(catalog.planned(Choice::Stock, (2, 64, 256)), Ok(split));
    assert_eq!(catalog.planned(Choice::Stock, (3, 64, 256)), Ok(Recipe::SingleWalk));
    for (size, words) in [
        ((10, 64, 256), "m=10; it goes up to m=9"),
        ((1, 64, 128), "lists no product of n=64 k=128"),
    ] {
        let sentence = catalog.planned(Choice::Stock, size).unwrap_err();
        assert!(sentence.contains(words), "{sentence}");
        assert_eq!(catalog.why_unknown(Choice::Stock, &stock, size), sentence);
    }
    let sentence = catalog.why_unknown(Choice::Stock, &stock, (3, 64, 256));
    assert!(sentence.starts_with("algorithm 41 (tile 393, "), "{sentence}");
    assert!(sentence.contains("found algorithm 66"), "{sentence}");
}

#[test]
fn a_listing_contradicts_nothing() {
    // (text to replace, replacement, words of the error)
    let cases = [
        ("\"format\": 2", "\"format\": 3", "format 3 is not 2"),
        ("[6, 9, 0]", "[4, 9, 0]", "not ascending inside 1..=9"),
        ("[6, 9, 0]", "[6, 10, 0]", "not ascending inside 1..=9"),
        ("[6, 9, 0]", "[6, 9, 2]", "there is no algorithm 2"),
        ("[6, 9, 0]", "[6, 9, 1]", "with split-K is listed as one without"),
        ("[1, 2, 1]", "[1, 2, 0]", "not used"),
        ("\"differing\": 0", "\"differing\": 1", "1 differ"),
        ("\"outputs\": 64", "\"outputs\": 0", "0 outputs"),
        ("\"single_walk\"", "\"split_k_workspace_f32(slices=2,k_tile=64)\"", "is no recipe of"),
        ("\"reduction_scheme\": 2", "\"reduction_scheme\": 1", "is no recipe of"),
        ("\"k\": 256", "\"k\": 250", "is no recipe of"),
        ("\"profile\"", "\"gpu\"", "unknown field `gpu`"),
        ("\"k\": 256", "\"k\": 0", "a weight has no elements"),
        ("\"n\": 64", "\"n\": 0", "a weight has no elements"),
        ("\"max_m\": 9", "\"max_m\": 0", "max_m 0 is outside 1..=1048576"),
        ("\"max_m\": 9", "\"max_m\": 1048577", "max_m 1048577 is outside"),
        ("\"accumulators\": 64", "\"accumulators\": 0", "0 accumulators"),
        ("\"repeated\": 64", "\"repeated\": 0", "0 repetitions"),
        ("[1, 3, 4, 6, 9]", "[1, 3, 6, 9]", "was not compared at m=4, where a run ends"),
        ("[1, 3, 4, 6, 9]", "[]", "was not compared at m=1"),
    ];
    for (from, to, words) in cases {
        let text = LISTING.replacen(from, to, 1);
        assert_ne!(text, LISTING, "{from}");
        let error = Catalog::parse("test", &text).unwrap_err().to_string();
        assert!(error.contains(words), "{from}: {error}");
    }
    let mut twice: serde_json::Value = serde_json::from_str(LISTING).unwrap();
    let shape = &mut twice["shapes"][0];
    let copy = shape["algorithms"][0].clone();
    shape["algorithms"].as_array_mut().unwrap().push(copy);
    shape["unsplit"][1][2] = 2.into();
    let error = Catalog::parse("test", &twice.to_string()).unwrap_err().to_string();
    assert!(error.contains("algorithm 41 ") && error.contains("is listed twice"), "{error}");
}
