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
    use crate::plan::{Contract, Plan, PlanBuilder, PlanError};
    use crate::recipe::Recipe;
    use crate::recipe::catalog::{Catalog, Choice};

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

    /// The plan of one product in a layer and one after it, under `native-stock`.
    fn products(catalog: &Catalog, pass: Pass) -> Plan {
        let mut builder = PlanBuilder::new(Contract::NativeStock(catalog), pass).unwrap();
        let mut x = builder.embedding("embedding", 4096);
        builder.layer(Some(0));
        x = builder.linear("o_proj", x, "o", (2560, 4096)).unwrap();
        builder.layer(None);
        x = builder.last_token(x);
        builder.linear("lm_head", x, "head", (151_936, 2560)).unwrap();
        builder.finish()
    }

    #[test]
    fn recipes_are_those_of_the_rows_of_the_launch() {
        let catalog = Catalog::by_id("h200-cublaslt-13.1-qwen3-4b").unwrap();
        let alone = products(&catalog, Pass::alone(3, 17, 1));
        let mut differs = 0;
        for (passes, rows) in [(1, 1), (2, 2), (3, 80), (64, 64), (241, 4096)] {
            let pass = Pass { batch: Batch { passes, rows }, ..Pass::alone(3, 17, 1) };
            let plan = products(&catalog, pass);
            let of = |m, n, k| catalog.planned(Choice::Stock, (m, n, k)).unwrap();
            let found: Vec<Recipe> = [1, 3].map(|step| plan.steps[step].recipe).into();
            let expected = [of(rows as u64, 2560, 4096), of(passes as u64, 151_936, 2560)];
            assert_eq!(found, expected, "{passes} passes, {rows} rows");
            assert!(plan.steps.iter().zip([1; 4]).all(|(step, rows)| step.rows == rows));
            // Steps are shared with a pass of the same batch only.
            assert_eq!(alone.for_pass(pass).is_some(), passes == 1);
            assert!(plan.for_pass(Pass { index: 4, start: 18, ..pass }).is_some());
            differs += usize::from(found[0] != alone.steps[1].recipe);
        }
        assert!(differs > 0, "the test wants a recipe that depends on the rows");
        let beyond = Pass { batch: Batch { passes: 2, rows: 4097 }, ..Pass::alone(0, 0, 4096) };
        let mut builder = PlanBuilder::new(Contract::NativeStock(&catalog), beyond).unwrap();
        let x = builder.embedding("embedding", 4096);
        builder.layer(Some(0));
        let refused = builder.linear("o_proj", x, "o", (2560, 4096)).unwrap_err();
        assert!(matches!(refused, PlanError::Unlisted { .. }), "{refused}");
    }

    #[test]
    fn under_native_a_batch_shares_the_steps() {
        let mut builder = PlanBuilder::new(Contract::Native, Pass::alone(0, 0, 3)).unwrap();
        builder.embedding("embedding", 4);
        let plan = builder.finish();
        let pass = Pass { batch: Batch { passes: 2, rows: 9 }, ..Pass::alone(0, 0, 3) };
        let shared = plan.for_pass(pass).unwrap();
        assert_eq!(shared.pass, pass);
        assert_eq!(shared.digest(), plan.digest(), "a batch is no part of the text");
        assert_eq!(plan.for_pass(Pass::alone(0, 0, 4)), None);
    }
}
