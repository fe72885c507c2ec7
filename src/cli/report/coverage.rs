//! The coverage map: for each row of the program and each pass, what was checked.
//!
//! Drawn as runs of equal cells, so that a thousand passes stay a small picture.

use super::document::Document;
use crate::transcript::Transcript;
use crate::transcript::cells::{Cell as Drawn, drawn};
use crate::transcript::opening::Draw;
use crate::transcript::statement::{Pass, Statement, TraceMode};
use crate::verify::report::{Finding, Outcome, Subject};

/// What was done with one cell: one row of the program in one pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cell {
    /// Its outputs are in the transcript and equal those of the re-execution.
    Compared,
    /// Computed again on the way to what was compared; the transcript does not hold
    /// its outputs.
    Computed,
    /// Compared as far as the first difference.
    Partly,
    /// The first difference is here.
    Differs,
    /// Not reached.
    Open,
}

impl Cell {
    /// Name of the style.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Compared => "compared",
            Self::Computed => "computed",
            Self::Partly => "partly",
            Self::Differs => "differs",
            Self::Open => "open",
        }
    }
}

/// Neighbouring cells that are alike, in units of a pass and a row.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Run {
    /// First pass.
    pub(super) start: usize,
    /// Passes.
    pub(super) count: usize,
    /// What was done with them.
    pub(super) cell: Cell,
}

/// A row of the map.
pub(super) struct Row {
    /// What it is.
    pub(super) name: String,
    /// Its cells.
    pub(super) runs: Vec<Run>,
}

/// Which row of the program: embedding, a layer, or what follows the layers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Embedding,
    Layer(usize),
    Head,
}

/// The map, from the embedding down to the logits; `None` where the number of layers
/// is not known because no model was there.
pub(super) fn rows(document: &Document, statement: &Statement) -> Option<Vec<Row>> {
    let layers = document.layers?;
    let parts = [Part::Embedding].into_iter().chain((0..layers).map(Part::Layer));
    let parts = parts.chain([Part::Head]);
    let row = |part| {
        let cells = (0..statement.passes.len())
            .map(|pass| cell(document, statement.trace.mode, part, pass));
        Row { name: name(part), runs: runs(cells) }
    };
    Some(parts.map(row).collect())
}

fn cell(document: &Document, trace: TraceMode, part: Part, pass: usize) -> Cell {
    match document.outcome(Subject::Execution) {
        Some(Outcome::Passed { .. } | Outcome::Partial { .. }) => equal(trace, part),
        Some(Outcome::Failed { finding: Some(finding), .. }) => beside(finding, trace, part, pass),
        Some(
            Outcome::Failed { finding: None, .. }
            | Outcome::NotAsked { .. }
            | Outcome::NotDecided { .. },
        )
        | None => Cell::Open,
    }
}

/// A cell of whose outputs none differs.
fn equal(trace: TraceMode, part: Part) -> Cell {
    match (trace, part) {
        (_, Part::Head)
        | (TraceMode::Steps | TraceMode::Layers, _)
        | (TraceMode::Cells, Part::Layer(_)) => Cell::Compared,
        (TraceMode::None, Part::Embedding | Part::Layer(_))
        | (TraceMode::Cells, Part::Embedding) => Cell::Computed,
    }
}

/// A cell where a difference was found somewhere. Execution goes step by step, each
/// step through all passes; it stopped at the difference.
fn beside(finding: &Finding, trace: TraceMode, part: Part, pass: usize) -> Cell {
    let found = match finding.layer {
        Some(layer) => Part::Layer(layer),
        None if finding.step_index == 0 => Part::Embedding,
        None => Part::Head,
    };
    if part < found {
        return equal(trace, part);
    }
    if part > found {
        return Cell::Open;
    }
    // One output of the part is recorded, unless every step's is.
    let one_output = match trace {
        // Of cells: two kept rows and the one handed on.
        TraceMode::Steps | TraceMode::Cells => part == Part::Embedding,
        TraceMode::Layers | TraceMode::None => true,
    };
    match pass.cmp(&finding.pass) {
        std::cmp::Ordering::Equal => Cell::Differs,
        std::cmp::Ordering::Less if one_output => Cell::Compared,
        std::cmp::Ordering::Greater if one_output || part == Part::Head => Cell::Open,
        std::cmp::Ordering::Less | std::cmp::Ordering::Greater => Cell::Partly,
    }
}

/// The map of a spot check: for each row of the program and each position. Layers are
/// checked one after the other, each step at all of its drawn positions.
pub(super) fn rows_of_draw(
    document: &Document,
    transcript: &Transcript,
    draw: &Draw,
) -> Option<Vec<Row>> {
    let layers = document.layers?;
    let ends: Vec<usize> = ends(transcript.statement());
    let statement = transcript.statement();
    // Fewer than a hostile statement can claim, and the same in an honest one.
    let tokens = statement.tokens_in.len() + statement.tokens_out.len();
    let positions = ends.last().map(|last| last + 1).filter(|&positions| positions <= tokens)?;
    let drawn = drawn(transcript.digest(), draw, positions, layers);
    let finding = document.finding();
    let checked = matches!(
        document.outcome(Subject::Execution),
        Some(Outcome::Passed { .. } | Outcome::Partial { .. } | Outcome::Failed { .. })
    );
    // Of a difference that was not located, only the root of the logits tells.
    let located = finding.map(|found| (found.layer.unwrap_or(layers), found.position));
    let cell = |part: Part, position: usize| {
        let (row, own) = match part {
            Part::Embedding => (0, drawn.contains(&Drawn { layer: 0, position })),
            Part::Layer(layer) => (layer, drawn.contains(&Drawn { layer, position })),
            Part::Head => (layers, ends.binary_search(&position).is_ok()),
        };
        let equal = if part == Part::Embedding { Cell::Computed } else { Cell::Compared };
        match located {
            _ if !own || !checked => Cell::Open,
            None => equal,
            Some((found, _)) if row < found || part == Part::Embedding && row <= found => equal,
            Some((found, _)) if row > found => Cell::Open,
            Some((_, at)) if at == Some(position) => Cell::Differs,
            Some(_) => Cell::Partly,
        }
    };
    let parts = [Part::Embedding].into_iter().chain((0..layers).map(Part::Layer));
    let row = |part: Part| Row {
        name: name(part),
        runs: runs((0..positions).map(|position| cell(part, position))),
    };
    Some(parts.chain([Part::Head]).map(row).collect())
}

/// Last positions of the passes, ascending.
fn ends(statement: &Statement) -> Vec<usize> {
    let end = |pass: &Pass| pass.start_position.saturating_add(pass.token_count).saturating_sub(1);
    statement.passes.iter().filter_map(|pass| usize::try_from(end(pass)).ok()).collect()
}

fn name(part: Part) -> String {
    match part {
        Part::Embedding => "embedding".into(),
        Part::Layer(layer) => format!("layer {layer}"),
        Part::Head => "logits, token".into(),
    }
}

fn runs(cells: impl Iterator<Item = Cell>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (pass, cell) in cells.enumerate() {
        match runs.last_mut() {
            Some(last) if last.cell == cell => last.count += 1,
            Some(_) | None => runs.push(Run { start: pass, count: 1, cell }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::report::Difference;

    fn found(layer: Option<usize>, step_index: usize) -> Finding {
        Finding {
            pass: 1,
            position: None,
            layer,
            step_index,
            step: "a step".into(),
            recipe: "a recipe".into(),
            difference: Difference::Length { recorded: 1, computed: 2 },
            diagnosis: None,
        }
    }

    #[test]
    fn cells_follow_the_order_of_execution() {
        use Cell::{Compared, Computed, Differs, Open, Partly};
        use TraceMode::{Layers, None as Untraced, Steps};
        let layer = Part::Layer;
        // (layer, step, trace, part, cells of three passes, reason)
        let cases = [
            (Some(1), 20, Steps, Part::Embedding, [Compared; 3], "an earlier part"),
            (Some(1), 20, Steps, layer(0), [Compared; 3], "an earlier layer"),
            (Some(1), 20, Steps, layer(1), [Partly, Differs, Partly], "some of its steps"),
            (Some(1), 20, Steps, layer(2), [Open; 3], "a later layer"),
            (Some(1), 34, Layers, layer(1), [Compared, Differs, Open], "its one output"),
            (None, 0, Steps, Part::Embedding, [Compared, Differs, Open], "its one step"),
            (None, 0, Steps, layer(0), [Open; 3], "after the embedding"),
            (None, 37, Untraced, layer(0), [Computed; 3], "on the way to the logits"),
            (None, 37, Untraced, Part::Head, [Compared, Differs, Open], "the logits"),
            (None, 37, Steps, Part::Head, [Partly, Differs, Open], "the token is after them"),
        ];
        for (in_layer, step, trace, part, expected, reason) in cases {
            let finding = found(in_layer, step);
            let cells = [0, 1, 2].map(|pass| beside(&finding, trace, part, pass));
            assert_eq!(cells, expected, "{reason}");
        }
    }

    #[test]
    fn equal_neighbours_are_one_run() {
        use Cell::{Compared, Differs, Open};
        let found = runs([Compared, Compared, Differs, Open].into_iter());
        let run = |start, count, cell| Run { start, count, cell };
        assert_eq!(found, [run(0, 2, Compared), run(2, 1, Differs), run(3, 1, Open)]);
    }
}
