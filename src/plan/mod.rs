//! The program as data: a list of steps, each one output in device memory.
//!
//! Models build plans ([`PlanBuilder`]), engines execute them, transcripts carry
//! their digests. A plan is never read from a file: the verifier builds its own.

mod builder;
mod cost;
mod encode;
mod op;
mod pass;

pub use builder::{PlanBuilder, PlanError};
pub use encode::PLAN_VERSION;
pub use op::{CacheSlot, Half, Op};
pub use pass::{Batch, Pass};

use std::sync::Arc;

use crate::num::Dtype;
use crate::recipe::Recipe;
use crate::recipe::catalog::{Catalog, Choice};

/// The numeric contract of a whole program: which recipes its operations take.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stack {
    /// Our engine: products without split-K, 32-lane row reductions and row-wise
    /// kernels, so that a row's bits do not depend on what it is batched with.
    Native,
    /// As [`Stack::Native`], but every product takes the algorithm that cuBLASLt
    /// prefers, split-K included: bits depend on how many rows it has.
    NativeStock,
}

impl Stack {
    /// The name used in plans and transcripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::NativeStock => "native-stock",
        }
    }

    /// Finds a stack by its name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Native, Self::NativeStock].into_iter().find(|stack| stack.name() == name)
    }

    /// Which algorithm the stack asks cuBLASLt for.
    pub fn choice(self) -> Choice {
        match self {
            Self::Native => Choice::Unsplit,
            Self::NativeStock => Choice::Stock,
        }
    }
}

/// A stack with what its recipes rest on: all that a plan needs besides the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contract<'a> {
    /// [`Stack::Native`]: the recipes follow from the operations.
    Native,
    /// [`Stack::NativeStock`]: this catalogue says which recipe a product of so many
    /// rows has.
    NativeStock(&'a Catalog),
}

impl<'a> Contract<'a> {
    /// The contract of a stack whose products are looked up in this catalogue.
    pub fn new(stack: Stack, catalog: &'a Catalog) -> Self {
        match stack {
            Stack::Native => Self::Native,
            Stack::NativeStock => Self::NativeStock(catalog),
        }
    }

    /// The stack.
    pub fn stack(self) -> Stack {
        match self {
            Self::Native => Stack::Native,
            Self::NativeStock(_) => Stack::NativeStock,
        }
    }
}

/// A value of one pass: assigned once, by one step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ValueId(pub u32);

/// What a step reads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// The token ids of the pass.
    Tokens,
    /// The output of an earlier step of the same pass.
    Value(ValueId),
    /// A tensor of the checkpoint, by its published name.
    Weight(String),
    /// Rows kept by this and all earlier passes, by position.
    Cache(CacheSlot),
}

/// One operation with one output that lands in device memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Path of the operation, such as `layers.0.self_attn.q_proj`.
    pub name: String,
    /// Layer it belongs to, if any.
    pub layer: Option<usize>,
    /// What is computed.
    pub op: Op,
    /// How: every rounding and its order.
    pub recipe: Recipe,
    /// What is read, in the order that the operation defines.
    pub inputs: Vec<Operand>,
    /// The value it defines.
    pub output: ValueId,
    /// Where its rows are kept for later passes, if anywhere.
    pub keeps: Option<CacheSlot>,
    /// Rows of the output (tokens of the pass, or 1 after [`Op::LastToken`]).
    pub rows: usize,
    /// Columns of the output.
    pub columns: usize,
    /// Element type of the output.
    pub dtype: Dtype,
}

/// The steps of one pass, in order of execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The numeric contract.
    pub stack: Stack,
    /// The pass this plan is for.
    pub pass: Pass,
    /// The steps. They depend on how many tokens the pass takes and not on which, so
    /// passes of one length share them ([`Self::for_pass`]).
    pub steps: Arc<[Step]>,
}

impl Plan {
    /// The plan of another pass that has the same steps: one of as many tokens, and
    /// where recipes depend on the rows of a launch, in such a batch. `None` for any
    /// other.
    pub fn for_pass(&self, pass: Pass) -> Option<Self> {
        let same_launch = match self.stack {
            Stack::Native => true,
            Stack::NativeStock => pass.batch == self.pass.batch,
        };
        let same = pass.tokens == self.pass.tokens && same_launch;
        same.then(|| Self { stack: self.stack, pass, steps: Arc::clone(&self.steps) })
    }

    /// The steps for one token of this pass: as they are, with one row. Rows are
    /// independent, so that row's bits are those it has in the pass.
    pub fn steps_of_a_token(&self) -> Arc<[Step]> {
        self.steps.iter().map(|step| Step { rows: 1, ..step.clone() }).collect()
    }

    /// Index of the step that defines the logits.
    pub fn logits_step(&self) -> Option<usize> {
        self.steps.iter().position(|step| step.name == LOGITS)
    }
}

/// Name of the step whose output is the logits.
pub const LOGITS: &str = "lm_head";
