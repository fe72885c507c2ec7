//! One forward pass, and what it is launched together with.

/// One forward pass: which tokens of which sequence it takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pass {
    /// Which sequence of the run it belongs to; caches are kept a sequence.
    pub sequence: usize,
    /// Number of the pass in its generation; 0 is the prefill.
    pub index: usize,
    /// Position of its first token.
    pub start: usize,
    /// Tokens it takes.
    pub tokens: usize,
    /// What it was launched together with. It is no part of a plan's text.
    pub batch: Batch,
}

/// The passes that are launched together: one of each of some sequences.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Batch {
    /// Passes (count), the pass itself included.
    pub passes: usize,
    /// Tokens that they take, all together.
    pub rows: usize,
}

impl Pass {
    /// A pass that runs alone, of a sequence that is the only one.
    pub fn alone(index: usize, start: usize, tokens: usize) -> Self {
        Self { sequence: 0, index, start, tokens, batch: Batch::alone(tokens) }
    }

    /// Whether so many tokens and at least one a pass beside them are those of the
    /// batch.
    pub fn fits_its_batch(&self) -> bool {
        let Batch { passes, rows } = self.batch;
        match passes.checked_sub(1) {
            None => false,
            Some(0) => rows == self.tokens,
            Some(others) => rows.checked_sub(self.tokens).is_some_and(|beside| beside >= others),
        }
    }
}

impl Batch {
    /// The batch of a pass of `tokens` tokens that runs alone.
    pub fn alone(tokens: usize) -> Self {
        Self { passes: 1, rows: tokens }
    }

    /// Rows of a matrix product that is launched for the whole batch: every token's in
    /// a layer, one a pass after the last.
    pub fn product_rows(self, in_layer: bool) -> usize {
        if in_layer { self.rows } else { self.passes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_holds_the_pass_and_a_token_of_every_other() {
        // passes, rows, tokens of the pass, whether they fit
        let cases = [
            (1, 5, 5, true),
            (1, 6, 5, false),
            (0, 0, 1, false),
            (2, 6, 5, true),
            (2, 5, 5, false),
            (3, 6, 5, false),
            (2, 4, 5, false),
            (2, usize::MAX, 5, true),
            (usize::MAX, usize::MAX, 1, true),
            (usize::MAX, usize::MAX, 2, false),
        ];
        for (passes, rows, tokens, fits) in cases {
            let pass = Pass { batch: Batch { passes, rows }, ..Pass::alone(0, 0, tokens) };
            assert_eq!(pass.fits_its_batch(), fits, "{passes} {rows} {tokens}");
        }
    }
}
