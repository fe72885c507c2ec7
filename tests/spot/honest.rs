//! What an honest prover keeps, opens and withholds.

use attest::transcript::Transcript;
use attest::transcript::cells::Cell;
use attest::transcript::opening::Draw;
use attest::transcript::statement::{LogitsMode, TraceMode};
use attest::transcript::write::{opened, statement_alone};
use attest::verify::report::{Subject, Verdict};

use crate::support::{Making, assert_verified};
use attest::num::Digest;
use attest::transcript::opening::Challenge;
use attest::verify::Verified;

use crate::{Prover, check, check_challenge, detail, draw, prover};

#[test]
fn the_statement_alone_verifies_as_well_as_the_whole() {
    for logits in [LogitsMode::Full, LogitsMode::Hash] {
        for trace in [TraceMode::None, TraceMode::Layers, TraceMode::Steps, TraceMode::Cells] {
            let made = Making { logits, trace, ..Making::default() }.make();
            let sealed = made.seal();
            let file = statement_alone(sealed.item_0(), made.statement.sections.len());
            let done = check(file.clone(), None);
            assert_verified(&done, trace.word());
            let alone = Transcript::parse(file).unwrap();
            assert_eq!(alone.digest(), sealed.digest(), "it is the same transcript");
            let words = match trace {
                TraceMode::None => "those of logits by their root",
                TraceMode::Layers | TraceMode::Steps | TraceMode::Cells => {
                    "those of logits and trace by their root"
                }
            };
            let detail = detail(&done, Subject::Execution);
            assert!(detail.contains(words), "{detail}");
        }
    }
}

#[test]
fn what_is_kept_verifies_in_full() {
    let done = check(prover().whole(), None);
    assert_verified(&done, "everything");
    assert_verified(&check(prover().made.whole.clone(), None), "as it was recorded");
    assert_eq!(prover().whole(), prover().made.whole);
}

#[test]
fn drawn_cells_are_partial_and_all_cells_are_everything() {
    let prover = prover();
    let all = prover.layout.cells();
    for cells in [1, 3, all - 1, all, all + 5] {
        let draw = draw(cells);
        let done = check(prover.opened(&draw), Some(&draw));
        let expected = if cells < all { Verdict::Partial } else { Verdict::Verified };
        assert_eq!(done.report.verdict(), expected, "{cells}: {:#?}", done.report);
        let coverage = detail(&done, Subject::Coverage);
        let words = if cells < all { format!("{cells} of {all} cells") } else { "all 10".into() };
        assert!(coverage.contains(&words), "{coverage}");
        assert!(done.text.is_some());
        // The file that has everything answers every challenge.
        let done = check(prover.whole(), Some(&draw));
        assert_eq!(done.report.verdict(), expected, "{cells}");
    }
    assert_eq!(Verdict::Partial.exit_code(), 6);
}

#[test]
fn every_cell_by_itself_holds() {
    let prover = prover();
    for layer in 0..prover.layout.layers {
        for position in 0..prover.layout.positions {
            let draw = prover.draw_of(Cell { layer, position });
            let file = prover.opened(&draw);
            let done = check(file.clone(), Some(&draw));
            assert_eq!(done.report.verdict(), Verdict::Partial, "{layer}, {position}");
            // Without a challenge everything is computed again.
            assert_verified(&check(file, None), "in full");
        }
    }
}

#[test]
fn a_batched_run_opens_as_well() {
    let making = Making { trace: TraceMode::Cells, ..Making::default() };
    for made in making.make_batch(&["Call me", "There she blows"]) {
        let kept = Transcript::parse(made.whole.clone()).unwrap();
        let layout = attest::transcript::cells::Layout::new(&made.layout().0);
        let mut file = Vec::new();
        opened(&kept, &layout, &draw(4), &mut file).unwrap();
        let done = check(file, Some(&draw(4)));
        assert_eq!(done.report.verdict(), Verdict::Partial, "{:#?}", done.report);
    }
}

#[test]
fn nothing_is_decided_without_the_openings_that_were_asked_for() {
    let prover = prover();
    let asked = draw(3);
    let other = Draw { nonce: b"another".to_vec(), ..draw(3) };
    let untraced = Prover::of(&Making { trace: TraceMode::Cells, ..Making::default() });
    let layers = Making { trace: TraceMode::Layers, ..Making::default() }.make().seal();
    let cases = [
        (prover.alone(), "the file has no openings"),
        (untraced.made.seal().as_bytes().to_vec(), "the file has no openings"),
        (prover.opened(&other), "the openings answer another challenge"),
        (prover.opened(&draw(4)), "the openings answer another challenge"),
        (layers.as_bytes().to_vec(), "the trace is not of cells"),
    ];
    for (file, words) in cases {
        let done = check(file, Some(&asked));
        assert_eq!(done.report.verdict(), Verdict::Incomplete, "{words}");
        let detail = detail(&done, Subject::Execution);
        assert!(detail.contains(words), "{detail}");
    }
}

#[test]
fn a_challenge_for_another_transcript_decides_nothing() {
    let prover = prover();
    let draw = draw(3);
    let challenge = Challenge { transcript: Digest([1; 32]), draw: draw.clone() };
    let done = check_challenge(prover.opened(&draw), Some(challenge));
    assert_eq!(done.report.verdict(), Verdict::Incomplete);
    let detail = detail(&done, Subject::Execution);
    assert!(detail.contains("the challenge is for transcript 0101"), "{detail}");
}

/// A spot check computes no trace as a whole: what the statement says of that section
/// beside its root is the signer's word, and named so.
#[test]
fn what_a_spot_check_does_not_compute_is_a_claim() {
    let prover = prover();
    let draw = draw(3);
    let named =
        |done: &Verified| done.claims.iter().any(|claim| claim.field == "sections.trace.sha256");
    assert!(named(&check(prover.opened(&draw), Some(&draw))));
    assert!(!named(&check(prover.whole(), Some(&draw))), "the section is there");
    assert!(!named(&check(prover.opened(&draw), None)), "everything is computed");
}

#[test]
fn a_statement_and_its_openings_are_small() {
    let prover = prover();
    let statement = prover.made.seal().item_0().len();
    assert_eq!(prover.alone().len(), statement + 2, "null in place of each section");
    // Position 0 of layer 0: its three rows, and the ends of three passes.
    let opened = prover.opened(&prover.draw_of(Cell { layer: 0, position: 0 }));
    let rows: usize =
        prover.rows[..3].iter().map(Vec::len).sum::<usize>() + 3 * prover.rows[5].len();
    assert!(opened.len() < statement + rows + 30 * 32, "{}", opened.len());
}
