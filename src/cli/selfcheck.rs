//! `attest run --selfcheck`: two runs of the same work must be the same to the bit.
//!
//! A library that chooses another algorithm the second time, or a GPU that does not
//! repeat itself, is noticed here, before anything is signed. Both runs are in one
//! process; the second opens the GPU and the library anew. What changes from one
//! process to the next only, `attest diff` of two transcripts shows.

use super::Exit;
use super::error::Failure;
use super::output::Output;
use super::produce::{Made, Sequence};
use crate::num::Digest;
use crate::transcript::record::Recording;
use crate::transcript::statement::DispatchRow;

/// Requires that two runs of the same work gave the same.
pub(super) fn require_same(first: &Made, second: &Made, output: &Output) -> Result<(), Failure> {
    match difference(first, second) {
        None => {
            output.note("note: a second run gave the same algorithms and the same bits");
            Ok(())
        }
        Some(what) => {
            let sentence = format!("two runs of the same work differ, nothing was written: {what}");
            Err(Failure::new(Exit::Mismatch, sentence).hint(HINT))
        }
    }
}

/// The first difference, causes before effects.
fn difference(first: &Made, second: &Made) -> Option<String> {
    if first.environment != second.environment {
        return Some("the environment is another".into());
    }
    if first.sequences.len() != second.sequences.len() {
        let (first, second) = (first.sequences.len(), second.sequences.len());
        return Some(format!("{first} sequences, then {second}"));
    }
    let pairs = first.sequences.iter().zip(&second.sequences);
    let several = first.sequences.len() > 1;
    let find = |(index, (first, second)): (usize, (&Sequence, &Sequence))| {
        let what = algorithms(&first.dispatch, &second.dispatch)
            .or_else(|| results(&first.recording, &second.recording))
            .or_else(|| tokens(first, second))?;
        Some(if several { format!("prompt {}: {what}", index + 1) } else { what })
    };
    pairs.enumerate().find_map(find)
}

/// The first product that was dispatched otherwise.
fn algorithms(first: &[DispatchRow], second: &[DispatchRow]) -> Option<String> {
    let missing = |row: &&DispatchRow| !second.contains(row);
    if let Some(row) = first.iter().find(missing) {
        let then = second.iter().find(|other| other.shape() == row.shape());
        let then = then.map_or("not at all".into(), algorithm);
        return Some(format!("{} took {}, then {then}", product(row), algorithm(row)));
    }
    let row = second.iter().find(|row| !first.contains(row))?;
    Some(format!("{} was not needed, then took {}", product(row), algorithm(row)))
}

fn product(row: &DispatchRow) -> String {
    format!("{} m={} n={} k={} {}", row.op, row.m, row.n, row.k, row.recipe)
}

fn algorithm(row: &DispatchRow) -> String {
    row.algorithm.as_ref().map_or("no library".into(), |a| {
        format!(
            "algorithm {} (tile {}, stages {}, split {}, reduction scheme {}, swizzle {}, option {}, \
             inner shape {}, cluster shape {}, workspace {} bytes)",
            a.id,
            a.tile,
            a.stages,
            a.split_k,
            a.reduction_scheme,
            a.swizzle,
            a.custom_option,
            a.inner_shape,
            a.cluster_shape,
            a.workspace_bytes
        )
    })
}

/// The first commitment that differs.
fn results(first: &Recording, second: &Recording) -> Option<String> {
    let differ = |what: &str, first: Digest, second: Digest| {
        (first != second).then(|| format!("the root of the {what} is {first}, then {second}"))
    };
    differ("logits", first.logits.root, second.logits.root)
        .or_else(|| differ("trace", first.trace.root?, second.trace.root?))
        .or_else(|| (first != second).then(|| "the recordings have other forms".into()))
}

/// The first token or plan that differs: only a defect of this program lets equal
/// logits lead to another.
fn tokens(first: &Sequence, second: &Sequence) -> Option<String> {
    (first.generation != second.generation).then(|| {
        let (first, second) = (&first.generation.tokens, &second.generation.tokens);
        let equal = first.iter().zip(second).take_while(|(a, b)| a == b).count();
        format!("equal logits, but the tokens or plans differ from token {equal} on")
    })
}

const HINT: &str = "a GPU or a library that does not repeat itself cannot be verified; \
                    --engine emulator does without both";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::generate::{Finish, Generation};
    use crate::num::{Bf16, Dtype, Tensor};
    use crate::transcript::record::Recorder;
    use crate::transcript::statement::{Algorithm, Engine, Environment, LogitsMode, TraceMode};

    /// One run: a product by this algorithm, a row of logits, a traced output.
    fn run(id: u32, logit: u16, traced: u16, token: u32) -> Made {
        let tensor = |bits| Tensor::matrix(1, 1, vec![Bf16(bits)]);
        let mut recorder = Recorder::new(LogitsMode::Full, TraceMode::Steps, 1, Dtype::Bf16);
        recorder.logits(0, 0, &tensor(logit)).unwrap();
        recorder.step(0, 0, "norm", &tensor(traced)).unwrap();
        let algorithm = Algorithm {
            id,
            tile: 393,
            stages: 35,
            split_k: 1,
            reduction_scheme: 0,
            swizzle: 0,
            custom_option: 0,
            inner_shape: 0,
            cluster_shape: 2,
            workspace_bytes: 0,
        };
        let row = DispatchRow {
            op: "linear".into(),
            m: 1,
            n: 256,
            k: 512,
            recipe: "single_walk".into(),
            algorithm: Some(algorithm),
        };
        let generation =
            Generation { tokens: vec![token], finish: Finish::Length, plans: Vec::new() };
        let recording = recorder.finish().unwrap();
        Made {
            sequences: vec![Sequence { generation, recording, dispatch: vec![row] }],
            environment: Environment { engine: Engine::Emulator, gpu: None },
        }
    }

    #[test]
    fn what_differs_between_two_runs_is_named_cause_first() {
        let first = run(66, 0x3f80, 0x3f80, 7);
        assert_eq!(difference(&first, &run(66, 0x3f80, 0x3f80, 7)), None);
        let cases = [
            (
                run(67, 0x3f81, 0x3f81, 8),
                "linear m=1 n=256 k=512 single_walk took algorithm 66 (tile 393, ",
                ", then algorithm 67 (tile 393, ",
            ),
            (run(66, 0x3f81, 0x3f81, 8), "the root of the logits is ", ", then "),
            (run(66, 0x3f80, 0x3f81, 7), "the root of the trace is ", ", then "),
            (run(66, 0x3f80, 0x3f80, 8), "equal logits, but ", "from token 0 on"),
        ];
        for (second, begin, then) in cases {
            let what = difference(&first, &second).unwrap();
            assert!(what.starts_with(begin) && what.contains(then), "{what}");
            let refused = require_same(&first, &second, &Output::new(false, true)).unwrap_err();
            assert_eq!(refused.exit.code(), 1);
            assert!(refused.message.ends_with(&what), "{}", refused.message);
        }
    }

    #[test]
    fn products_of_one_run_only_and_other_environments_are_named() {
        let (first, mut second) = (run(66, 0, 0, 0), run(66, 0, 0, 0));
        second.sequences[0].dispatch.clear();
        let what = difference(&first, &second).unwrap();
        assert!(what.ends_with("then not at all"), "{what}");
        let what = difference(&second, &first).unwrap();
        assert!(what.contains("was not needed, then took algorithm 66"), "{what}");
        second.environment.engine = Engine::Cuda;
        assert_eq!(difference(&first, &second).unwrap(), "the environment is another");
        second.environment.engine = Engine::Emulator;
        second.sequences.push(run(66, 0, 0, 0).sequences.remove(0));
        assert_eq!(difference(&first, &second).unwrap(), "1 sequences, then 2");
    }
}
