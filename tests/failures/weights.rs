//! Weight files that lie about themselves, and weights that are hard to compare.

use std::fs;
use std::process::Command;

use attest::model::files::Folder;
use attest::model::weights::Weights;
use attest::model::{Config, Kind};
use safetensors::Dtype;

use crate::command::{Home, end};
use crate::folder::{home, ran, refused, run, tensors, write};
use crate::judged;
use crate::small::{TestFolder, raw_file};
use crate::support::Made;

const WEIGHTS: &str = "model/model.safetensors";
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n\
    oid sha256:0000000000000000000000000000000000000000000000000000000000000000\nsize 9\n";

/// A header of this length, and almost nothing behind it.
fn announcing(header: u64) -> Vec<u8> {
    [&header.to_le_bytes()[..], b"{}"].concat()
}

/// Rows 2 to 5.
#[test]
fn a_weight_file_that_is_not_what_it_says_is_refused() {
    let home = home();
    let whole = fs::read(home.path(WEIGHTS)).unwrap();
    let invalid =
        |reason: &str| format!("model.safetensors is not a valid safetensors file: {reason}");
    let tensor = r#"{"x":{"dtype":"BF16","shape":[1000,1000],"data_offsets":[0,4]}}"#;
    // (row, file, exit code, sentence)
    let cases = [
        (2, announcing(u64::MAX), 4, invalid("header of 18446744073709551615 bytes, more than")),
        (2, announcing(100_000_001), 4, invalid("header of 100000001 bytes, more than 100000000")),
        (3, raw_file(tensor, 4), 4, invalid("invalid shape, data type, or offset")),
        (4, LFS_POINTER.to_vec(), 5, "is a Git LFS pointer, fetch the real file".into()),
        (5, [&whole[..], &[0]].concat(), 4, invalid("incomplete metadata, file not fully covered")),
    ];
    for (row, file, exit, sentence) in cases {
        println!("row {row}");
        home.write(WEIGHTS, file);
        refused(&home, exit, &sentence);
    }
}

/// Row 2: neither a resident nor a reserved megabyte more than for a file of 7 bytes.
#[cfg(target_os = "linux")]
#[test]
fn a_hostile_header_costs_no_memory() {
    // In a process of its own: the peak of this one is that of all its tests.
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "weights::peak_of_hostile_headers", "--ignored", "--nocapture"]);
    let output = child.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    let growth: Vec<u64> = printed
        .lines()
        .filter_map(|line| line.split_once("grew by ")?.1.strip_suffix(" KiB")?.parse().ok())
        .collect();
    assert_eq!(growth.len(), 4, "{printed}");
    assert!(growth.iter().all(|&kib| kib < 1024), "{printed}");
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "a_hostile_header_costs_no_memory runs it, in a process of its own"]
fn peak_of_hostile_headers() {
    let peaks = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        ["VmHWM", "VmPeak"].map(|name| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        })
    };
    let folder = TestFolder::valid();
    let config = Config::from_json(&folder.read("config.json")).unwrap();
    let refuse = |file: &[u8]| {
        folder.write("model.safetensors", file);
        let error = Weights::open(&Folder::open(&folder.path()).unwrap(), &config).unwrap_err();
        assert_eq!(error.kind(), Kind::Malformed, "{error}");
    };
    refuse(&[0; 7]);
    let before = peaks();
    for header in [u64::MAX, 100_000_001] {
        refuse(&announcing(header));
        for (before, after) in before.iter().zip(peaks()) {
            println!("header of {header} bytes: grew by {} KiB", after - before);
        }
    }
    // The measure itself: a buffer of the announced length shows in both peaks.
    let block = std::hint::black_box(vec![1_u8; 100_000_001]);
    let seen = before.iter().zip(peaks()).all(|(before, after)| after - before > 1024);
    assert!(seen && block[0] == 1, "{before:?}, {:?}", peaks());
}

/// Rows 9 and 10. Both sides say which matrix is used where the folder is unclear.
#[test]
fn the_output_matrix_is_that_of_the_configuration_and_a_spare_one_is_named() {
    let home = home();
    let config = fs::read_to_string(home.path("model/config.json")).unwrap();
    let untied = config.replace("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    assert_ne!(config, untied);
    home.write("model/config.json", untied);
    let sentence = "tensor lm_head.weight is missing: tie_word_embeddings is false";
    let args = ["run", "--model", "model", "--prompt", "p.txt", "--engine", "emulator"];
    crate::command::fails(&mut home.attest(&args), 5, &[sentence]);
    home.write("model/config.json", config);

    let embedding = tensors()["model.embed_tokens.weight"].clone();
    let mut other = embedding.clone();
    other.2[0] ^= 1;
    let warning = "lm_head.weight differs from model.embed_tokens.weight though \
                   tie_word_embeddings is true; model.embed_tokens.weight is used";
    // (the tensor, whether it is worth a word, reason)
    let cases = [
        (None, false, "the published form"),
        (Some(embedding), false, "a harmless copy"),
        (Some(other), true, "another matrix, which is not used"),
    ];
    for (head, warned, reason) in cases {
        let mut all = tensors();
        all.extend(head.map(|head| ("lm_head.weight".into(), head)));
        write(&home.path(WEIGHTS), &all);
        let ran = run(&home, "p.txt", &[]);
        assert_eq!(ran.exit, 0, "{reason}: {}", ran.stderr);
        assert_eq!(ran.stderr.contains(&format!("warning: {warning}")), warned, "{}", ran.stderr);
        let ended = end(&mut home.attest(&["verify", "o.cbor", "--model", "model"]));
        assert_eq!(ended.exit, 0, "{reason}: {}", ended.stdout);
        let row = ended.stdout.lines().find(|line| line.starts_with("model ")).unwrap();
        assert_eq!(row.contains(warning), warned, "{reason}: {row}");
    }
}

/// A run with words of the final norm's weight replaced.
fn with_norm(home: &Home, words: &[u16]) -> Made {
    let mut all = tensors();
    let (_, _, bytes) = all.get_mut("model.norm.weight").unwrap();
    for (element, word) in bytes.chunks_mut(2).zip(words) {
        element.copy_from_slice(&word.to_le_bytes());
    }
    write(&home.path(WEIGHTS), &all);
    let ended = run(home, "p.txt", &[]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    ran(home)
}

/// Row 29.
#[test]
fn every_bit_of_a_nan_counts_and_weights_may_hold_them() {
    let home = home();
    // (words, the first logit, reason)
    let cases: [(&[u16], Option<u16>, &str); 3] = [
        (&[0x7fa0], Some(0x7fff), "a signalling NaN, whose payload the GPU drops"),
        (&[0x3f80, 0xffff], Some(0x7fff), "a negative NaN"),
        (&[0x7f7f, 0x7f7f], None, "the largest numbers: sums that overflow"),
    ];
    for (words, first, reason) in cases {
        let mut made = with_norm(&home, words);
        let logit = u16::from_le_bytes([made.contents[0][0], made.contents[0][1]]);
        assert!(first.is_none_or(|first| first == logit), "{reason}: {logit:04x}");
        let verify = ["verify", "o.cbor", "--model", "model"];
        let ended = end(&mut home.attest(&verify));
        assert_eq!(ended.exit, 0, "{reason}: {}", ended.stdout);
        if first.is_none() {
            continue;
        }
        // The quiet NaN that other hardware writes.
        made.contents[0][..2].copy_from_slice(&0x7fc0_u16.to_le_bytes());
        made.commit();
        home.write("t.cbor", made.seal().as_bytes());
        let ended = judged(
            &home,
            &["--model", "model"],
            1,
            "execution",
            &["is 7fc0 (NaN) in the transcript, 7fff (NaN) computed: NaN sign or payload differs"],
        );
        assert!(ended.stdout.contains("1 of 1536 elements differ"), "{}", ended.stdout);
    }
    assert_eq!(tensors()["model.norm.weight"].0, Dtype::BF16);
}
