//! What a run rests on: a stack, a GPU profile, and a catalogue that knows the model's
//! products.

use super::Exit;
use super::error::Failure;
use crate::isa::mma::MmaProfile;
use crate::isa::profile::Profile;
use crate::model::{Config, qwen3};
use crate::plan::{Contract, Op, Pass, Stack};
use crate::recipe::catalog::Catalog;
use crate::transcript::statement::Artifact;

/// The GPU whose arithmetic the stacks `native` and `native-stock` have.
pub(super) const PROFILE: &str = "h200";
/// The catalogue of [`PROFILE`] for models that no listing was made for.
const CATALOGUE: &str = "h200-cublaslt-13.1";

/// A stack with what its recipes rest on.
pub(super) struct Basis {
    /// The stack.
    pub(super) stack: Stack,
    /// The catalogue.
    pub(super) catalog: Catalog,
    /// The instruction of every product.
    pub(super) mma: MmaProfile,
    /// The profile, as a statement names it.
    pub(super) profile: Artifact,
}

impl Basis {
    /// The one of models that no listing was made for.
    pub(super) fn general() -> Result<Self, Failure> {
        let catalog = Catalog::by_id(CATALOGUE).map_err(|error| internal(&error.to_string()))?;
        Self::with(Stack::Native, catalog)
    }

    /// The one of a model: its listing if there is one.
    pub(super) fn of(stack: Stack, config: &Config) -> Result<Self, Failure> {
        let weights: Vec<_> = weights(config)?.into_iter().map(|(shape, _)| shape).collect();
        match (Catalog::knowing(stack.choice(), &weights), stack) {
            (Some(catalog), _) => Self::with(stack, catalog),
            (None, Stack::Native) => Self::general(),
            (None, Stack::NativeStock) => {
                let listed: Vec<String> =
                    weights.iter().map(|(n, k)| format!("n={n} k={k}")).collect();
                let message = format!(
                    "no catalogue lists what cuBLASLt chooses for this model's products: {}",
                    listed.join(", ")
                );
                Err(Failure::new(Exit::Incomplete, message)
                    .hint("`attest catalog build` measures them on a GPU"))
            }
        }
    }

    fn with(stack: Stack, catalog: Catalog) -> Result<Self, Failure> {
        let profile = Profile::by_id(PROFILE).map_err(|error| internal(&error.to_string()))?;
        let mma = profile.mma("bf16").copied();
        let mma = mma.ok_or_else(|| internal("the profile has no bf16 instruction"))?;
        let profile = Artifact { id: profile.id, digest: profile.digest };
        Ok(Self { stack, catalog, mma, profile })
    }

    /// What plans are built with.
    pub(super) fn contract(&self) -> Contract<'_> {
        Contract::new(self.stack, &self.catalog)
    }

    /// The catalogue, as a statement names it.
    pub(super) fn catalogue(&self) -> Artifact {
        Artifact { id: self.catalog.id().into(), digest: self.catalog.digest() }
    }
}

/// Rows and dot-product length of weights, and what they are called.
pub(super) type NamedShape = ((u64, u64), Vec<String>);

/// Distinct shapes `(n, k)` of a model's weights and what they are called, in the
/// plan's order.
pub(super) fn weights(config: &Config) -> Result<Vec<NamedShape>, Failure> {
    let pass = Pass::alone(0, 0, 1);
    let plan = qwen3::forward(config, Contract::Native, pass)
        .map_err(|error| internal(&error.to_string()))?;
    let mut weights: Vec<NamedShape> = Vec::new();
    for step in plan.steps.iter() {
        let Op::Linear { k } = step.op else { continue };
        let shape = (step.columns as u64, k as u64);
        let name = step.name.rsplit('.').next().unwrap_or_default().to_owned();
        match weights.iter_mut().find(|(known, _)| *known == shape) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => weights.push((shape, vec![name])),
        }
    }
    Ok(weights)
}

fn internal(what: &str) -> Failure {
    Failure::new(Exit::Internal, what)
}
