//! Builds plans: infers shapes, checks them, and takes recipes from the stack.

use super::{CacheSlot, Contract, Op, Operand, Pass, Plan, Step, ValueId};
use crate::num::{Dtype, F32};
use crate::recipe::Recipe;
use crate::recipe::catalog::Choice;

/// Why a plan could not be built.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// Operands of one operation disagree.
    #[error("{step}: expected {expected} columns, found {found}")]
    Columns {
        /// The step.
        step: String,
        /// Columns that the operation needs.
        expected: usize,
        /// Columns of the operand.
        found: usize,
    },
    /// Operands of one operation have different numbers of rows.
    #[error("{step}: operands have {left} and {right} rows")]
    Rows {
        /// The step.
        step: String,
        /// Rows of the first operand.
        left: usize,
        /// Rows of the second operand.
        right: usize,
    },
    /// Nobody knows the recipe of a product.
    #[error("{step}: {reason}")]
    Unlisted {
        /// The step.
        step: String,
        /// The catalogue's own words.
        reason: String,
    },
    /// A pass must take at least one token.
    #[error("pass {index} takes no token")]
    EmptyPass {
        /// Number of the pass.
        index: usize,
    },
}

/// A handle of a value under construction; not data.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    id: ValueId,
    rows: usize,
    columns: usize,
}

/// Builds the plan of one pass; the only maker of value ids.
#[derive(Debug)]
pub struct PlanBuilder<'a> {
    contract: Contract<'a>,
    pass: Pass,
    layer: Option<usize>,
    steps: Vec<Step>,
}

impl<'a> PlanBuilder<'a> {
    /// Starts the plan of a pass.
    ///
    /// # Errors
    /// [`PlanError::EmptyPass`].
    pub fn new(contract: Contract<'a>, pass: Pass) -> Result<Self, PlanError> {
        if pass.tokens == 0 {
            return Err(PlanError::EmptyPass { index: pass.index });
        }
        Ok(Self { contract, pass, layer: None, steps: Vec::new() })
    }

    /// The steps so far belong to no layer, the next ones to `layer`.
    pub fn layer(&mut self, layer: Option<usize>) {
        self.layer = layer;
    }

    /// Gathers embedding rows of the pass's tokens.
    pub fn embedding(&mut self, weight: &str, hidden: usize) -> Value {
        let inputs = vec![Operand::Tokens, Operand::Weight(weight.into())];
        let shape = (self.pass.tokens, hidden);
        self.push("embed_tokens", Op::Embedding, Recipe::Copy, inputs, shape)
    }

    /// Normalises runs of `width` elements of every row.
    ///
    /// # Errors
    /// [`PlanError::Columns`] if `width` does not divide the columns.
    pub fn rms_norm(
        &mut self,
        name: &str,
        x: Value,
        weight: &str,
        eps: F32,
        width: usize,
    ) -> Result<Value, PlanError> {
        if width == 0 || !x.columns.is_multiple_of(width) {
            return Err(self.columns(name, width, x.columns));
        }
        let lanes = match self.contract {
            Contract::Native | Contract::NativeStock(_) => 32,
        };
        let inputs = vec![Operand::Value(x.id), Operand::Weight(weight.into())];
        let recipe = Recipe::RowReduction { lanes };
        Ok(self.push(name, Op::RmsNorm { eps, width }, recipe, inputs, (x.rows, x.columns)))
    }

    /// Multiplies by the transpose of a weight of `n` rows and `k` columns.
    ///
    /// # Errors
    /// [`PlanError::Columns`] if `x` does not have `k` columns;
    /// [`PlanError::Unlisted`] if the contract's catalogue does not list the product.
    pub fn linear(
        &mut self,
        name: &str,
        x: Value,
        weight: &str,
        (n, k): (usize, usize),
    ) -> Result<Value, PlanError> {
        if x.columns != k {
            return Err(self.columns(name, k, x.columns));
        }
        let recipe = match self.contract {
            Contract::Native => Recipe::SingleWalk,
            Contract::NativeStock(catalog) => {
                // Of the launch, not of this pass alone.
                let m = self.pass.batch.product_rows(self.layer.is_some());
                let size = (m as u64, n as u64, k as u64);
                catalog
                    .planned(Choice::Stock, size)
                    .map_err(|reason| PlanError::Unlisted { step: self.path(name), reason })?
            }
        };
        let inputs = vec![Operand::Value(x.id), Operand::Weight(weight.into())];
        Ok(self.push(name, Op::Linear { k }, recipe, inputs, (x.rows, n)))
    }

    /// Rotates every head by its position.
    ///
    /// # Errors
    /// [`PlanError::Columns`] if `head_dim` does not divide the columns.
    pub fn rope(
        &mut self,
        name: &str,
        x: Value,
        theta: u64,
        head_dim: usize,
    ) -> Result<Value, PlanError> {
        if head_dim == 0 || !x.columns.is_multiple_of(head_dim) {
            return Err(self.columns(name, head_dim, x.columns));
        }
        let op = Op::Rope { theta, head_dim };
        let inputs = vec![Operand::Value(x.id)];
        Ok(self.push(name, op, Recipe::RopeBf16, inputs, (x.rows, x.columns)))
    }

    /// Keeps the rows of the step that defined `x` for later passes.
    pub fn keep(&mut self, x: Value, slot: CacheSlot) {
        // Ids count steps, so the value's own step is found by its id.
        if let Some(step) = self.steps.get_mut(x.id.0 as usize) {
            step.keeps = Some(slot);
        }
    }

    /// Attends to every kept position up to the row's own.
    ///
    /// # Errors
    /// [`PlanError::Columns`] if `q` does not hold `q_heads` heads.
    pub fn attention(
        &mut self,
        name: &str,
        q: Value,
        (keys, values): (CacheSlot, CacheSlot),
        (q_heads, kv_heads, head_dim): (usize, usize, usize),
    ) -> Result<Value, PlanError> {
        if q.columns != q_heads * head_dim {
            return Err(self.columns(name, q_heads * head_dim, q.columns));
        }
        let recipe = match self.contract {
            Contract::Native | Contract::NativeStock(_) => Recipe::Flash2 { kv_tile: 64 },
        };
        let inputs = vec![Operand::Value(q.id), Operand::Cache(keys), Operand::Cache(values)];
        let op = Op::Attention { q_heads, kv_heads, head_dim };
        Ok(self.push(name, op, recipe, inputs, (q.rows, q.columns)))
    }

    /// Adds two values.
    ///
    /// # Errors
    /// [`PlanError::Columns`] or [`PlanError::Rows`] if their shapes differ.
    pub fn add(&mut self, name: &str, a: Value, b: Value) -> Result<Value, PlanError> {
        self.pair(name, Op::Add, a, b)
    }

    /// `silu(gate) · up`.
    ///
    /// # Errors
    /// [`PlanError::Columns`] or [`PlanError::Rows`] if their shapes differ.
    pub fn silu_mul(&mut self, name: &str, gate: Value, up: Value) -> Result<Value, PlanError> {
        self.pair(name, Op::SiluMul, gate, up)
    }

    /// Takes the last row.
    pub fn last_token(&mut self, x: Value) -> Value {
        let inputs = vec![Operand::Value(x.id)];
        self.push("last_token", Op::LastToken, Recipe::Copy, inputs, (1, x.columns))
    }

    /// Index of the largest element of each row.
    pub fn argmax(&mut self, x: Value) -> Value {
        let inputs = vec![Operand::Value(x.id)];
        self.push("argmax", Op::Argmax, Recipe::LowestIndex, inputs, (x.rows, 1))
    }

    /// Ends the plan.
    pub fn finish(self) -> Plan {
        Plan { stack: self.contract.stack(), pass: self.pass, steps: self.steps.into() }
    }

    fn pair(&mut self, name: &str, op: Op, a: Value, b: Value) -> Result<Value, PlanError> {
        if a.columns != b.columns {
            return Err(self.columns(name, a.columns, b.columns));
        }
        if a.rows != b.rows {
            return Err(PlanError::Rows { step: self.path(name), left: a.rows, right: b.rows });
        }
        let inputs = vec![Operand::Value(a.id), Operand::Value(b.id)];
        Ok(self.push(name, op, Recipe::Elementwise, inputs, (a.rows, a.columns)))
    }

    fn push(
        &mut self,
        name: &str,
        op: Op,
        recipe: Recipe,
        inputs: Vec<Operand>,
        (rows, columns): (usize, usize),
    ) -> Value {
        let id = ValueId(self.steps.len() as u32);
        let dtype = if op == Op::Argmax { Dtype::U32 } else { Dtype::Bf16 };
        self.steps.push(Step {
            name: self.path(name),
            layer: self.layer,
            op,
            recipe,
            inputs,
            output: id,
            keeps: None,
            rows,
            columns,
            dtype,
        });
        Value { id, rows, columns }
    }

    fn path(&self, name: &str) -> String {
        match self.layer {
            Some(layer) => format!("layers.{layer}.{name}"),
            None => name.into(),
        }
    }

    fn columns(&self, name: &str, expected: usize, found: usize) -> PlanError {
        PlanError::Columns { step: self.path(name), expected, found }
    }
}
