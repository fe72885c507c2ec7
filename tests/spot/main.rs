//! Spot checks and transcripts that withhold their sections: what is drawn is computed
//! again, what is not drawn is not claimed.
//!
//! `honest`: what a prover keeps, opens and withholds. `forged`: what a prover who holds
//! a trusted key changes, and which check notices it.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

mod forged;
mod honest;
#[path = "../support/mod.rs"]
mod support;

use std::sync::OnceLock;

use attest::isa::mma::Simd;
use attest::model::Content;
use attest::num::{Digest, sha256};
use attest::transcript::cells::{Cell, Layout, drawn};
use attest::transcript::opening::{Challenge, Draw, Opening};
use attest::transcript::statement::TraceMode;
use attest::transcript::{Transcript, merkle, write};
use attest::verify::{Anchor, Request, Verified, verify};

use support::{Made, Making};

/// What a prover has after a run: a statement that may still be changed, and every row.
#[derive(Clone)]
struct Prover {
    made: Made,
    layout: Layout,
    /// Contents of every leaf, in order.
    rows: Vec<Vec<u8>>,
}

/// An honest one: a prompt of three tokens and three generated ones, two layers.
fn prover() -> Prover {
    static PROVER: OnceLock<Prover> = OnceLock::new();
    PROVER
        .get_or_init(|| Prover::of(&Making { trace: TraceMode::Cells, ..Making::default() }))
        .clone()
}

impl Prover {
    fn of(making: &Making<'_>) -> Self {
        let made = making.make();
        let layout = Layout::new(&made.layout().0);
        let whole = Transcript::parse(made.whole.clone()).unwrap();
        let contents = whole.opening().unwrap().contents.clone();
        let all = whole.bytes(contents).unwrap();
        // Two kept rows and the one handed on, of each layer.
        let config = support::model().config();
        let kept = 2 * config.num_key_value_heads * config.head_dim;
        let widths = [kept, kept, 2 * config.hidden_size];
        let mut rest = &all[..];
        let mut rows = Vec::new();
        for index in 0..layout.count() as usize {
            let (row, later) = rest.split_at(widths[index % 3]);
            rows.push(row.to_vec());
            rest = later;
        }
        assert!(rest.is_empty());
        Self { made, layout, rows }
    }

    /// Makes the commitments those of the rows, as a liar would.
    fn commit(&mut self) {
        let digests: Vec<Digest> = self.rows.iter().map(|row| sha256(&[row])).collect();
        let leaves = self.layout.hashes(|index| digests.get(index as usize).copied()).unwrap();
        self.made.contents[1] = digests.iter().flat_map(|digest| digest.0).collect();
        self.made.statement.trace.root = Some(merkle::root(&leaves));
        for (section, contents) in self.made.statement.sections.iter_mut().zip(&self.made.contents)
        {
            section.sha256 = sha256(&[contents]);
        }
    }

    /// The file that has everything.
    fn whole(&self) -> Vec<u8> {
        let mut file = self.made.seal().as_bytes().to_vec();
        let rows = self.rows.concat();
        file.extend(Opening::head(None, rows.len() as u64));
        file.extend(rows);
        file.extend(Opening::tail(&[]));
        file
    }

    /// The file that withholds every section.
    fn alone(&self) -> Vec<u8> {
        let sealed = self.made.seal();
        write::statement_alone(sealed.item_0(), self.made.statement.sections.len())
    }

    /// The file that answers a draw.
    fn opened(&self, draw: &Draw) -> Vec<u8> {
        let kept = Transcript::parse(self.whole()).unwrap();
        let mut file = Vec::new();
        write::opened(&kept, &self.layout, draw, &mut file).unwrap();
        file
    }

    fn cells(&self, draw: &Draw) -> Vec<Cell> {
        let digest = self.made.statement.digest().unwrap();
        drawn(digest, draw, self.layout.positions, self.layout.layers).into_iter().collect()
    }

    /// A draw of one cell: this one.
    fn draw_of(&self, cell: Cell) -> Draw {
        let draw = |nonce: u32| Draw { cells: 1, nonce: nonce.to_be_bytes().to_vec() };
        (0..).map(draw).find(|draw| self.cells(draw) == [cell]).unwrap()
    }
}

/// Verifies a file against a draw, or in full.
fn check(file: Vec<u8>, draw: Option<&Draw>) -> Verified {
    // As `attest challenge` writes it of this file.
    let digest = Transcript::parse(file.clone()).map(|transcript| transcript.digest());
    let transcript = digest.unwrap_or(Digest([0; 32]));
    let challenge = draw.cloned().map(|draw| Challenge { transcript, draw });
    check_challenge(file, challenge)
}

/// Verifies a file against a challenge, or in full.
fn check_challenge(file: Vec<u8>, challenge: Option<Challenge>) -> Verified {
    verify(Request {
        file: file.into(),
        anchor: Anchor::Store(&support::trust()),
        nonce: None,
        challenge,
        simd: Simd::detect(),
        open_model: &|_| Content::open(&support::tiny().join("model")),
        progress: &mut |_| {},
        diagnosing: None,
    })
}

/// A draw of so many cells.
fn draw(cells: u64) -> Draw {
    Draw { cells, nonce: b"drawn after the statement".to_vec() }
}

/// How a check of this subject ended, in words.
fn detail(done: &Verified, subject: attest::verify::report::Subject) -> String {
    let check = done.report.checks.iter().find(|check| check.subject == subject).unwrap();
    serde_json::to_value(check).unwrap().to_string()
}
