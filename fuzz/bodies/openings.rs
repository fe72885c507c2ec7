//! Openings behind a fixed statement: whatever is accepted is what the prover would open.

use std::sync::LazyLock;

use attest::model::{Config, qwen3};
use attest::num::{Digest, F32, sha256};
use attest::plan::{Contract, Pass};
use attest::transcript::Transcript;
use attest::transcript::cells::{Layout, Opened};
use attest::transcript::key::PrivateKey;
use attest::transcript::merkle;
use attest::transcript::opening::Opening;
use attest::transcript::statement::TraceMode;
use attest::transcript::write::{item_0, opened, statement_alone};

/// A prompt of three tokens and one pass more, one layer, rows of four elements.
pub struct Prover {
    layout: Layout,
    alone: Vec<u8>,
    kept: Transcript,
}

static PROVER: LazyLock<Prover> = LazyLock::new(Prover::new);

impl Prover {
    fn new() -> Self {
        let config = Config {
            vocab_size: 4,
            hidden_size: 4,
            intermediate_size: 4,
            num_hidden_layers: 1,
            num_attention_heads: 1,
            num_key_value_heads: 1,
            head_dim: 4,
            rms_norm_eps: F32::ZERO,
            rope_theta: 1,
            max_position_embeddings: 8,
            tie_word_embeddings: true,
            eos_token_id: Vec::new(),
        };
        let passes = [Pass::alone(0, 0, 3), Pass::alone(1, 3, 1)];
        let plans = passes.map(|pass| qwen3::forward(&config, Contract::Native, pass).unwrap());
        let layout = Layout::new(&plans);
        let golden = include_bytes!("../../tests/golden/transcript-v1.cbor");
        let mut statement = Transcript::parse(golden.to_vec()).unwrap().statement().clone();
        let rows: Vec<[u8; 8]> = (0..layout.count()).map(|row| [row as u8; 8]).collect();
        let digests: Vec<Digest> = rows.iter().map(|row| sha256(&[row])).collect();
        let leaves = layout.hashes(|index| digests.get(index as usize).copied()).unwrap();
        statement.trace.mode = TraceMode::Cells;
        statement.trace.count = layout.count();
        statement.trace.root = Some(merkle::root(&leaves));
        statement.sections[1].leaf_count = layout.count();
        statement.sections[1].len_bytes = 32 * layout.count();
        let item_0 = item_0(&statement, &PrivateKey::from_seed(&[7; 32])).unwrap();
        let alone = statement_alone(&item_0, 2);
        let rows = rows.concat();
        let head = Opening::head(None, rows.len() as u64);
        let whole = [&alone[..], &head, &rows, &Opening::tail(&[])].concat();
        Self { layout, alone, kept: Transcript::parse(whole).unwrap() }
    }
}

/// What follows the statement in a file that the prover makes: of a draw, or of everything.
pub fn honest(draw: Option<&attest::transcript::opening::Draw>) -> Vec<u8> {
    let Prover { layout, alone, kept } = &*PROVER;
    match draw {
        None => kept.as_bytes()[alone.len()..].to_vec(),
        Some(draw) => {
            let mut file = Vec::new();
            opened(kept, layout, draw, &mut file).unwrap();
            file.split_off(alone.len())
        }
    }
}

/// The openings: if they lead to the root, they are the prover's, byte for byte.
pub fn openings(input: &[u8]) -> bool {
    let Prover { layout, alone, .. } = &*PROVER;
    let Ok(file) = Transcript::parse([alone, input].concat()) else { return false };
    let Some(opening) = file.opening() else {
        assert!(input.is_empty());
        return false;
    };
    if Opened::check_all(&file, layout).is_err() {
        return false;
    }
    assert_eq!(honest(opening.draw.as_ref()), input);
    true
}
