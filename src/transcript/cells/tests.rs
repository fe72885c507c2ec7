use super::*;
use crate::model::Config;
use crate::plan::{Contract, Pass};

/// Plans of a prompt of three tokens and two passes of one, of a model of two layers.
fn layout() -> Layout {
    let text = include_bytes!("../../../examples/tiny/model/config.json");
    let mut config = Config::from_json(text).unwrap();
    config.num_hidden_layers = 2;
    let passes = [Pass::alone(0, 0, 3), Pass::alone(1, 3, 1), Pass::alone(2, 4, 1)];
    let plan = |pass| qwen3::forward(&config, Contract::Native, pass).unwrap();
    Layout::new(&passes.map(plan))
}

#[test]
fn a_position_has_three_leaves_a_layer() {
    let layout = layout();
    assert_eq!((layout.positions, layout.layers), (5, 2));
    assert_eq!((layout.count(), layout.cells()), (5 * 6, 10));
    let names: Vec<&str> = layout.leaves.iter().map(|leaf| leaf.name.as_str()).collect();
    let own = ["self_attn.k_rope", "self_attn.v_proj", "mlp.residual"];
    let expected: Vec<String> =
        (0..2).flat_map(|layer| own.map(|name| format!("layers.{layer}.{name}"))).collect();
    assert_eq!(names, expected);
    for (within, name) in names.iter().enumerate() {
        let named = qwen3::row_of_cells(names.len(), within).unwrap();
        assert_eq!((named.layer, named.name.as_str()), (Some(within / 3), *name));
    }
    assert_eq!(qwen3::row_of_cells(7, 0), None);
    assert_eq!(qwen3::row_of_cells(6, 6), None);
    let kept: Vec<bool> = layout.leaves.iter().map(|leaf| leaf.kept).collect();
    assert_eq!(kept, [true, true, false, true, true, false]);
    assert_eq!(layout.passes, [0, 0, 0, 1, 2]);
}

#[test]
fn a_leaf_is_bound_to_its_pass_position_and_step() {
    let layout = layout();
    let content = sha256(&[b"content"]);
    let hashes: BTreeSet<Digest> =
        (0..layout.count()).map(|index| layout.hash(index, content).unwrap()).collect();
    assert_eq!(hashes.len() as u64, layout.count(), "no two leaves have one hash");
    assert_eq!(layout.hash(layout.count(), content), None);
}

#[test]
fn a_draw_needs_its_cells_inputs_and_outputs_and_every_end() {
    let layout = layout();
    let marks = |cells: &[(usize, usize)]| {
        let cells = cells.iter().map(|&(layer, position)| Cell { layer, position }).collect();
        let needed = layout.needed(&cells);
        let rows = needed
            .chunks(6)
            .map(|row| row.iter().map(|&mark| if mark { 'x' } else { '.' }).collect::<String>());
        rows.collect::<Vec<String>>().join(" ")
    };
    // Of each position: keys, values and row of layer 0, then those of layer 1. Passes end
    // at positions 2, 3 and 4.
    type Case<'a> = (&'a [(usize, usize)], &'a str, &'a str);
    let cases: [Case<'_>; 5] = [
        (&[], "...... ...... .....x .....x .....x", "the ends alone"),
        (&[(0, 0)], "xxx... ...... .....x .....x .....x", "its input is the embedding"),
        (&[(1, 0)], "..xxxx ...... .....x .....x .....x", "its input is layer 0's row"),
        (&[(0, 2)], "xx.... xx.... xxx..x .....x .....x", "what was kept before it"),
        (&[(0, 1), (1, 3)], "xx.xx. xxxxx. ...xxx ..xxxx .....x", "both"),
    ];
    for (cells, expected, reason) in cases {
        assert_eq!(marks(cells), expected, "{reason}");
    }
    let all: Vec<(usize, usize)> = (0..5).flat_map(|p| [(0, p), (1, p)]).collect();
    assert_eq!(marks(&all), ["xxxxxx"; 5].join(" "));
}

#[test]
fn a_draw_is_distinct_cells_that_follow_from_transcript_and_nonce() {
    let draw = |cells, nonce: &[u8]| Draw { cells, nonce: nonce.to_vec() };
    let own = sha256(&[b"a transcript"]);
    let first = drawn(own, &draw(20, b"n"), 9, 4);
    assert_eq!(first.len(), 20);
    assert!(first.iter().all(|cell| cell.layer < 4 && cell.position < 9));
    assert_eq!(first, drawn(own, &draw(20, b"n"), 9, 4));
    assert_ne!(first, drawn(own, &draw(20, b"m"), 9, 4), "another nonce");
    assert_ne!(first, drawn(sha256(&[b"another"]), &draw(20, b"n"), 9, 4));
    let more = drawn(own, &draw(25, b"n"), 9, 4);
    assert!(more.is_superset(&first), "a larger draw goes on where a smaller one ended");
    for asked in [36, 37, u64::MAX] {
        assert_eq!(drawn(own, &draw(asked, b"n"), 9, 4).len(), 36, "all there are");
    }
}

#[test]
fn every_cell_is_drawn_about_equally_often() {
    let mut counts = BTreeMap::new();
    for round in 0..3000u32 {
        let draw = Draw { cells: 2, nonce: round.to_be_bytes().to_vec() };
        for cell in drawn(sha256(&[]), &draw, 3, 4) {
            *counts.entry(cell).or_insert(0u32) += 1;
        }
    }
    // 6000 draws over 12 cells: 500 each, standard deviation 20.
    assert_eq!(counts.len(), 12);
    assert!(counts.values().all(|&count| (400..600).contains(&count)), "{counts:?}");
}
