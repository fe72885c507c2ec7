//! What a prover who holds a trusted key changes, and which check notices it.

use attest::num::{Digest, sha256};
use attest::transcript::cells::Cell;
use attest::transcript::leaf::logits_root;
use attest::transcript::opening::{Draw, Opening};
use attest::transcript::statement::TraceMode;
use attest::transcript::{RefusalClass, Transcript};
use attest::verify::Verified;
use attest::verify::report::{Finding, Outcome, Subject, Verdict};

use crate::support::{Making, failures, key};
use crate::{Prover, check, draw, prover};

fn finding(done: &Verified) -> Finding {
    let found = |check: &attest::verify::report::Check| match &check.outcome {
        Outcome::Failed { finding, .. } => finding.clone(),
        Outcome::Passed { .. }
        | Outcome::Partial { .. }
        | Outcome::NotAsked { .. }
        | Outcome::NotDecided { .. } => None,
    };
    done.report.checks.iter().find_map(found).unwrap_or_else(|| panic!("{:#?}", done.report))
}

/// One bit of every kind of row at every cell: drawing the cell shows it, with its place.
#[test]
fn a_forged_row_is_found_by_its_cell() {
    let steps = ["self_attn.k_rope", "self_attn.v_proj", "mlp.residual"];
    for index in 0..prover().rows.len() {
        let mut liar = prover();
        *liar.rows[index].last_mut().unwrap() ^= 0x40;
        liar.commit();
        let (layer, position) = (index / 3 % 2, index / 6);
        let draw = liar.draw_of(Cell { layer, position });
        let done = check(liar.opened(&draw), Some(&draw));
        assert_eq!(done.report.verdict(), Verdict::Mismatch, "{index}");
        let found = finding(&done);
        assert_eq!((found.layer, found.position), (Some(layer), Some(position)), "{found}");
        assert_eq!(found.step, format!("layers.{layer}.{}", steps[index % 3]));
        // A full verification finds it too, in a file that withholds everything by the root.
        for file in [liar.whole(), liar.alone()] {
            assert_eq!(check(file, None).report.verdict(), Verdict::Mismatch, "{index}");
        }
    }
}

/// What a draw does not look at it does not see: the limit that the report states.
#[test]
fn a_forged_row_is_not_seen_by_a_cell_that_does_not_read_it() {
    let mut liar = prover();
    // The keys of layer 1 at the last position: only its own cell reads them.
    let last = liar.layout.positions - 1;
    liar.rows[last * 6 + 3][0] ^= 1;
    liar.commit();
    let mut seen = 0;
    for nonce in 0..60u32 {
        let draw = Draw { cells: 1, nonce: nonce.to_be_bytes().to_vec() };
        let own = liar.cells(&draw) == [Cell { layer: 1, position: last }];
        let done = check(liar.opened(&draw), Some(&draw));
        let expected = if own { Verdict::Mismatch } else { Verdict::Partial };
        assert_eq!(done.report.verdict(), expected, "{nonce}");
        seen += usize::from(own);
    }
    assert!((1..20).contains(&seen), "{seen} of 60 draws, 1 in 10 expected");
}

/// A row that a layer hands on is an input of the next cell and, at the end of a pass,
/// of the token: that much is looked at in every spot check.
#[test]
fn the_end_of_every_pass_is_always_looked_at() {
    for position in [2, 3, 4] {
        let mut liar = prover();
        liar.rows[position * 6 + 5][1] ^= 0x40;
        liar.commit();
        let draw = liar.draw_of(Cell { layer: 0, position: 0 });
        let done = check(liar.opened(&draw), Some(&draw));
        assert_eq!(done.report.verdict(), Verdict::Mismatch, "{position}: {:#?}", done.report);
    }
}

#[test]
fn forged_logits_and_tokens_are_found_whatever_is_drawn() {
    // One logit, where the section is withheld: the root tells.
    let mut liar = prover();
    liar.made.contents[0][0] ^= 1;
    let rows: Vec<_> = liar.made.contents[0].chunks(2 * 1536).map(|row| sha256(&[row])).collect();
    liar.made.statement.logits.root = logits_root(&liar.made.statement, rows.into_iter());
    liar.commit();
    // Another token, with everything that was computed from it as it was.
    let mut other = prover();
    let last = other.made.statement.tokens_out.last_mut().unwrap();
    *last = if *last == 5 { 6 } else { 5 };
    for (liar, words) in [(liar, "section logits"), (other, "the largest logit is")] {
        let draw = draw(2);
        for file in [liar.opened(&draw), liar.alone()] {
            let spot = file.len() > liar.alone().len();
            let done = check(file, spot.then_some(&draw));
            assert_eq!(done.report.verdict(), Verdict::Mismatch);
            let failures = failures(&done);
            assert!(failures.iter().any(|(_, _, why)| why.contains(words)), "{failures:?}");
        }
    }
}

/// Openings are not signed; the statement's root binds them.
#[test]
fn changed_openings_are_malformed() {
    let prover = prover();
    let draw = draw(2);
    let file = prover.opened(&draw);
    let start = Transcript::parse(file.clone()).unwrap().item_0().len();
    for at in (start..file.len()).step_by(7).chain(file.len() - 40..file.len()) {
        let mut changed = file.clone();
        changed[at] ^= 0x10;
        let done = check(changed, Some(&draw));
        // Also in the draw: another one needs other rows.
        assert_eq!(done.report.verdict(), Verdict::Malformed, "byte {at}: {:#?}", done.report);
    }
    for length in (start..file.len()).step_by(11) {
        let refusal = Transcript::parse(file[..length].to_vec());
        match refusal {
            Err(refusal) => assert_eq!(refusal.class(), RefusalClass::Malformed, "{length}"),
            Ok(alone) => assert!(alone.opening().is_none() && length == start + 2, "{length}"),
        }
    }
    let longer = [&file[..], &[0]].concat();
    let refusal = Transcript::parse(longer).unwrap_err().to_string();
    assert!(refusal.contains("1 bytes after the last section"), "{refusal}");
}

/// Also where nobody asked for them.
#[test]
fn whatever_a_verified_file_opens_is_what_the_statement_commits_to() {
    let prover = prover();
    let draw = draw(2);
    for mut file in [prover.opened(&draw), prover.whole()] {
        let opening = Transcript::parse(file.clone()).unwrap().opening().unwrap().clone();
        file[opening.contents.start as usize + 1] ^= 1;
        let expected = "the openings do not lead to the trace's root".to_owned();
        let found = failures(&check(file, None));
        assert_eq!(found, [(Subject::Encoding, Verdict::Malformed, expected)]);
    }
    for trace in [TraceMode::None, TraceMode::Layers, TraceMode::Steps] {
        let made = Making { trace, ..Making::default() }.make();
        let appended = [&Opening::head(None, 3)[..], b"row", &Opening::tail(&[])].concat();
        let file = [made.seal().as_bytes(), &appended[..]].concat();
        let refusal = Transcript::parse(file).unwrap_err().to_string();
        assert!(refusal.ends_with("bytes after the last section"), "{refusal}");
    }
}

/// Lengths follow from the draw: nothing is read, or reserved, that is not due.
#[test]
fn openings_of_another_length_are_malformed_before_they_are_read() {
    let prover = prover();
    let draw = draw(2);
    let file = prover.opened(&draw);
    let opening = Transcript::parse(file.clone()).unwrap().opening().unwrap().clone();
    let (start, end) = (opening.contents.start as usize, opening.contents.end as usize);
    let alone = prover.alone();
    let with = |rows: &[u8], nodes: usize| {
        let nodes = vec![Digest([7; 32]); nodes];
        let head = Opening::head(Some(&draw), rows.len() as u64);
        [&alone[..], &head, rows, &Opening::tail(&nodes)].concat()
    };
    let nodes = (opening.nodes.end - opening.nodes.start) as usize / 32;
    for (file, words) in [
        (with(&file[start..end - 1], nodes), "bytes of rows"),
        (with(&file[start..], nodes), "bytes of rows"),
        (with(&file[start..end], nodes - 1), "nodes"),
        (with(&file[start..end], 1 << 20), "1048576 nodes"),
    ] {
        let found = failures(&check(file, Some(&draw)));
        assert_eq!((found[0].0, found[0].1), (Subject::Encoding, Verdict::Malformed));
        assert!(found[0].2.contains(words), "{found:?}");
    }
}

/// A withheld section has a digest, too, and it must be that of what was computed.
#[test]
fn a_false_digest_of_a_withheld_section_is_found() {
    for section in 0..2 {
        let mut liar = prover();
        liar.made.statement.sections[section].sha256 = sha256(&[b"no such section"]);
        let alone = {
            let item_0 = attest::transcript::write::item_0(&liar.made.statement, &key()).unwrap();
            attest::transcript::write::statement_alone(&item_0, 2)
        };
        let found = failures(&check(alone, None));
        assert_eq!((found[0].0, found[0].1), (Subject::Execution, Verdict::Mismatch));
        assert!(found[0].2.contains("no such section exists"), "{found:?}");
    }
}

#[test]
fn openings_of_another_transcript_do_not_fit() {
    let (ours, mut theirs) = (prover(), prover());
    theirs.rows[0][0] ^= 1;
    theirs.commit();
    // All cells, so that both are asked for the same.
    let draw = draw(ours.layout.cells());
    let (own, other) = (ours.opened(&draw), theirs.opened(&draw));
    let spliced = [&own[..ours.alone().len()], &other[theirs.alone().len()..]].concat();
    let done = check(spliced, Some(&draw));
    let expected = "the openings do not lead to the trace's root".to_owned();
    assert_eq!(failures(&done), [(Subject::Encoding, Verdict::Malformed, expected)]);
}

#[test]
fn a_prover_without_the_trusted_key_gets_nowhere() {
    let prover = prover();
    let draw = draw(2);
    let opened = prover.opened(&draw);
    let other = attest::transcript::key::PrivateKey::from_seed(&[9; 32]);
    let statement = &prover.made.statement;
    let item_0 = attest::transcript::write::item_0(statement, &other).unwrap();
    let own = attest::transcript::write::item_0(statement, &key()).unwrap();
    let file = [&item_0[..], &opened[own.len()..]].concat();
    let done = check(file, Some(&draw));
    assert_eq!(done.report.verdict(), Verdict::Untrusted);
}

/// A prover who knows the draw before signing forges where it does not look: so the draw
/// must be made from the statement.
#[test]
fn a_draw_follows_the_statement() {
    let mut liar: Prover = prover();
    let draw = draw(5);
    let before = liar.cells(&draw);
    liar.rows[0][0] ^= 1;
    liar.commit();
    assert_ne!(liar.cells(&draw), before, "another statement, other cells");
}
