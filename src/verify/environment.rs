//! Whether this build knows everything the statement names: profile, catalogue,
//! kernels, stack, dispatch rows; and whether the plans are the verifier's own.

use std::collections::BTreeSet;

use super::report::Verdict;
use crate::isa::mma::MmaProfile;
use crate::isa::profile::Profile;
use crate::model::Config;
use crate::num::Dtype;
use crate::plan::{Contract, PLAN_VERSION, Plan, Stack};
use crate::recipe::catalog::Catalog;
use crate::recipe::cublaslt::Attributes;
use crate::recipe::kernel_sets;
use crate::transcript::Statement;
use crate::transcript::capture;
use crate::transcript::statement::{Algorithm, DispatchRow, GpuEnvironment};

/// Why a check of the environment failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    /// What it leads to.
    pub(super) leads_to: Verdict,
    /// What failed.
    pub(super) detail: String,
}

fn unknown(detail: String) -> Refusal {
    Refusal { leads_to: Verdict::Incomplete, detail }
}

fn differs(detail: String) -> Refusal {
    Refusal { leads_to: Verdict::Mismatch, detail }
}

/// What the statement names and this build knows.
#[derive(Debug)]
pub(super) struct Known {
    stack: Stack,
    pub(super) mma: MmaProfile,
    catalog: Catalog,
}

impl Known {
    /// The catalogue.
    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Which recipes the plans have.
    pub(super) fn contract(&self) -> Contract<'_> {
        Contract::new(self.stack, &self.catalog)
    }
}

/// Looks everything up that the statement names.
pub(super) fn look_up(statement: &Statement) -> Result<Known, Refusal> {
    if statement.numerics != u64::from(PLAN_VERSION) {
        return Err(unknown(format!(
            "the transcript follows numerics version {}, this program {PLAN_VERSION}",
            statement.numerics
        )));
    }
    let stack = Stack::by_name(&statement.stack)
        .ok_or_else(|| unknown(format!("stack {:?} is not known", statement.stack)))?;

    let profile =
        Profile::by_id(&statement.profile.id).map_err(|error| unknown(error.to_string()))?;
    require_digest("profile", &statement.profile, profile.digest)?;
    let mma = profile.mma(INPUT_FORMAT).copied().ok_or_else(|| {
        unknown(format!("profile {} has no {INPUT_FORMAT} instruction", profile.id))
    })?;

    let catalog =
        Catalog::by_id(&statement.catalogue.id).map_err(|error| unknown(error.to_string()))?;
    require_digest("catalogue", &statement.catalogue, catalog.digest())?;
    if catalog.profile() != profile.id {
        return Err(differs(format!(
            "catalogue {} is for profile {}, not {}",
            statement.catalogue.id,
            catalog.profile(),
            profile.id
        )));
    }
    if let Some(gpu) = &statement.environment.gpu {
        check_gpu(gpu, &catalog)?;
    }
    Ok(Known { stack, mma, catalog })
}

fn require_digest(
    kind: &str,
    stated: &crate::transcript::statement::Artifact,
    own: crate::num::Digest,
) -> Result<(), Refusal> {
    if stated.digest == own {
        return Ok(());
    }
    Err(unknown(format!(
        "{kind} {} has digest {} in the transcript, {own} in this program",
        stated.id, stated.digest
    )))
}

/// Kernels, compiler and library are ones that were measured.
fn check_gpu(gpu: &GpuEnvironment, catalog: &Catalog) -> Result<(), Refusal> {
    let kernels =
        gpu.kernels.iter().map(|kernel| (kernel.name.as_str(), kernel.sha256.to_string()));
    kernel_sets::measured(kernels, &gpu.nvrtc_options).map_err(unknown)?;
    catalog.covers(&gpu.name, &gpu.nvrtc, &gpu.cublaslt).map_err(unknown)
}

/// Requires rows of logits to have the model's form. Their bytes alone would not
/// show it: as many bytes can be half as many elements of twice the size.
pub(super) fn check_logits(statement: &Statement, config: &Config) -> Result<(), Refusal> {
    let logits = &statement.logits;
    if (logits.vocab, logits.dtype) == (config.vocab_size as u64, Dtype::Bf16) {
        return Ok(());
    }
    Err(differs(format!(
        "rows of logits are {} {}, the model has {} {}",
        logits.vocab,
        logits.dtype.name(),
        config.vocab_size,
        Dtype::Bf16.name()
    )))
}

/// Requires the statement's passes and dispatch rows to be those of the
/// verifier's own plans.
pub(super) fn check_plans(
    statement: &Statement,
    known: &Known,
    plans: &[Plan],
) -> Result<String, Refusal> {
    if statement.passes.len() != plans.len() {
        return Err(differs(format!(
            "{} passes where {} tokens were generated",
            statement.passes.len(),
            plans.len()
        )));
    }
    for (index, (stated, plan)) in statement.passes.iter().zip(plans).enumerate() {
        let own = capture::pass_record(plan);
        if *stated == own {
            continue;
        }
        let (from, count) = (stated.start_position, stated.token_count);
        let what = if (from, count) != (own.start_position, own.token_count) {
            format!(
                "takes {count} tokens from position {from}, expected {} from {}",
                own.token_count, own.start_position
            )
        } else if stated.logits_rows != own.logits_rows {
            format!("commits to {} rows of logits, expected 1", stated.logits_rows)
        } else {
            format!(
                "has plan digest {}, this program builds {}",
                stated.plan_digest, own.plan_digest
            )
        };
        return Err(differs(format!("pass {index} {what}")));
    }
    check_dispatch(statement, known, plans)?;
    Ok(format!(
        "stack {}, profile {}, catalogue {}, {} plans, {} dispatch rows",
        statement.stack,
        statement.profile.id,
        statement.catalogue.id,
        plans.len(),
        statement.dispatch.len()
    ))
}

fn check_dispatch(statement: &Statement, known: &Known, plans: &[Plan]) -> Result<(), Refusal> {
    let stated: BTreeSet<DispatchRow> = statement.dispatch.iter().map(DispatchRow::shape).collect();
    let due = capture::products(plans);
    if let Some(row) = due.difference(&stated).next() {
        return Err(differs(format!("no dispatch row for {}", describe(row))));
    }
    if let Some(row) = stated.difference(&due).next() {
        return Err(differs(format!("the plans have no product like {}", describe(row))));
    }
    // Rows are ascending, so those of one product are neighbours. An engine chooses
    // once for each.
    let twice = statement.dispatch.windows(2).find(|rows| rows[0].shape() == rows[1].shape());
    if let Some([row, _]) = twice {
        return Err(differs(format!("two dispatch rows for {}", describe(row))));
    }
    let on_gpu = statement.environment.gpu.is_some();
    for row in &statement.dispatch {
        match &row.algorithm {
            Some(algorithm) if on_gpu => check_algorithm(row, algorithm, known)?,
            None if !on_gpu => {}
            Some(_) => {
                return Err(differs(format!(
                    "the emulator asks no library, yet an algorithm is stated for {}",
                    describe(row)
                )));
            }
            None => return Err(differs(format!("no algorithm for {}", describe(row)))),
        }
    }
    Ok(())
}

/// The algorithm is one that was measured for this product, within the workspace
/// that the library is offered, and computes the stated recipe.
fn check_algorithm(row: &DispatchRow, algorithm: &Algorithm, known: &Known) -> Result<(), Refusal> {
    let (choice, size) = (known.stack.choice(), (row.m, row.n, row.k));
    let (own, needed) = (attributes(algorithm), algorithm.workspace_bytes);
    let recipe = known.catalog.recipe_of(choice, &own, size).ok_or_else(|| {
        let reason = known.catalog.why_unknown(choice, &own, size);
        unknown(format!("no measured recipe for {}: {reason}", describe(row)))
    })?;
    let offered = known.catalog.preference(choice).map_or(0, |asked| asked.workspace_bytes);
    if needed > offered as u64 {
        let own = own.id;
        return Err(unknown(format!(
            "algorithm {own} needs {needed} bytes of workspace for {}, {offered} are offered",
            describe(row)
        )));
    }
    if recipe.to_string() != row.recipe {
        return Err(differs(format!(
            "algorithm {} computes {recipe}, the transcript says {}",
            algorithm.id,
            describe(row)
        )));
    }
    Ok(())
}

fn describe(row: &DispatchRow) -> String {
    format!("{} m={} n={} k={} {}", row.op, row.m, row.n, row.k, row.recipe)
}

fn attributes(algorithm: &Algorithm) -> Attributes {
    Attributes {
        id: algorithm.id,
        tile: algorithm.tile,
        stages: algorithm.stages,
        split_k: algorithm.split_k,
        reduction_scheme: algorithm.reduction_scheme,
        swizzle: algorithm.swizzle,
        custom_option: algorithm.custom_option,
        inner_shape: algorithm.inner_shape,
        cluster_shape: algorithm.cluster_shape,
    }
}

/// The instruction that every matrix product of a bf16 model uses.
const INPUT_FORMAT: &str = "bf16";
