//! GPUs and libraries, as far as they show without one.

use std::fs;

use attest::transcript::statement::LogitsMode;

use crate::command::{Home, end, fails};
use crate::folder::{home, ran, run};
use crate::judged;
use crate::small::TestFolder;
use crate::support::{Making, pretend_gpu};

/// Row 31: what the library was asked and what it answered is in the transcript, and an
/// answer that was never measured decides nothing.
#[test]
fn an_algorithm_that_was_never_measured_is_incomplete() {
    let home = Home::configured();
    let mut made = Making::default().make();
    pretend_gpu(&mut made.statement);
    home.write("t.cbor", made.seal().as_bytes());
    judged(&home, &[], 0, "signer says", &["dispatch algorithms of "]);
    let stated = end(&mut home.attest(&["inspect", "t.cbor", "--json"])).json();
    let algorithm = &stated["dispatch"][0]["algorithm"];
    assert_eq!((&algorithm["id"], &algorithm["workspace_bytes"]), (&66.into(), &0.into()));

    let change = |what: fn(&mut attest::transcript::statement::Algorithm)| {
        let mut made = made.clone();
        what(made.statement.dispatch[0].algorithm.as_mut().unwrap());
        made.statement.dispatch.sort();
        home.write("t.cbor", made.seal().as_bytes());
    };
    change(|algorithm| algorithm.id = 13);
    judged(&home, &[], 5, "environment", &["algorithm 13 (split 1, reduction scheme 0) was not"]);
    change(|algorithm| algorithm.workspace_bytes = 1 << 40);
    judged(&home, &[], 5, "environment", &["1099511627776 bytes of workspace", "are offered"]);
}

/// Row 32, as far as an engine that repeats itself can show it. What two differing runs
/// lead to is tested beside the comparison, in `src/cli/selfcheck.rs`.
#[test]
fn a_selfcheck_runs_twice_and_changes_nothing() {
    let home = home();
    home.write("q.txt", "The sea");
    let told = "note: a second run gave the same algorithms and the same bits";
    for (prompts, files) in [
        (&["--trace", "layers"][..], &["o.cbor"][..]),
        (&["--prompt", "q.txt"], &["o-1.cbor", "o-2.cbor"]),
    ] {
        let read = || files.iter().map(|file| fs::read(home.path(file)).unwrap()).collect();
        let once = run(&home, "p.txt", prompts);
        assert_eq!(once.exit, 0, "{}", once.stderr);
        assert!(!once.stderr.contains(told), "{}", once.stderr);
        let before: Vec<Vec<u8>> = read();
        let twice = run(&home, "p.txt", &[prompts, &["--selfcheck"]].concat());
        assert_eq!(twice.exit, 0, "{}", twice.stderr);
        assert_eq!(
            twice.stderr.lines().filter(|line| *line == told).count(),
            1,
            "{}",
            twice.stderr
        );
        assert!(before == read(), "{files:?}");
    }
}

/// Row 33: a product whose K ends inside a tile was never measured. The emulator, which
/// asks no library, computes it as `spec/ops.md` says.
#[test]
fn a_tail_of_k_on_a_gpu_is_incomplete() {
    let model = TestFolder::valid();
    let folder = model.path();
    let folder = folder.to_str().unwrap();
    let home = Home::configured();
    home.write("p.txt", "ab");
    let args = ["run", "--model", folder, "--prompt", "p.txt", "--engine", "emulator"];
    let more = ["--max-new-tokens=1", "--logits=hash", "--claimed-time=1796045700", "--whole"];
    let made = end(home.attest(&args).args(more).args(["--out", "o.cbor"]));
    assert_eq!(made.exit, 0, "{}", made.stderr);
    fs::copy(home.path("o.cbor"), home.path("t.cbor")).unwrap();
    judged(&home, &["--model", folder], 0, "environment", &["dispatch rows"]);

    let mut made = ran(&home);
    assert_eq!(made.statement.logits.mode, LogitsMode::Hash);
    pretend_gpu(&mut made.statement);
    home.write("t.cbor", made.seal().as_bytes());
    let sentence = "algorithm 66 was measured with multiples of 64 as k, the product has k=24: \
                    the library can lose the last 24 terms";
    judged(&home, &["--model", folder], 5, "environment", &["FAILED", sentence]);

    // No catalogue lists the model, so nobody knows what the library would split.
    let stock = [&args[..], &["--gemm", "stock", "--out", "s.cbor"]].concat();
    fails(&mut home.attest(&stock), 5, &["no catalogue lists what cuBLASLt chooses", "k=24"]);
}
