//! `attest plan`: the steps of one forward pass and their recipes.

use std::fmt::Write as _;

use clap::Args as ClapArgs;

use super::basis::Basis;
use super::error::Failure;
use super::output::Output;
use super::run::Gemm;
use super::{CommandResult, Exit};
use crate::engine::generate::GenerateError;
use crate::model::content::Configuration;
use crate::model::locate::Places;
use crate::model::qwen3;
use crate::plan::Pass;

/// Arguments of `attest plan`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Model name or folder.
    #[arg(long)]
    model: String,
    /// Tokens that the pass takes.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    tokens: u32,
    /// Position of its first token.
    #[arg(long, default_value_t = 0)]
    start: u32,
    /// Which algorithms matrix products take, as for `attest run`.
    #[arg(long, value_enum, default_value_t = Gemm::Unsplit)]
    gemm: Gemm,
    /// Print only the steps of one layer; the first is 0.
    #[arg(long, conflicts_with = "canonical")]
    layer: Option<usize>,
    /// Print the canonical text; its SHA-256 is the plan digest of a transcript.
    #[arg(long)]
    canonical: bool,
}

/// Builds and prints the plan.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let folder = Places::from_env().resolve(&args.model)?;
    let config = Configuration::read(&folder)?.config;
    let (start, tokens) = (u64::from(args.start), u64::from(args.tokens));
    let (end, context) = (start + tokens, config.max_position_embeddings as u64);
    if end > context {
        let message = format!(
            "{tokens} tokens from position {start} on end at {end}, past the context of {context}"
        );
        return Err(Failure::new(Exit::Usage, message));
    }
    let layers = config.num_hidden_layers;
    if let Some(layer) = args.layer.filter(|&layer| layer >= layers) {
        let message = format!("there is no layer {layer}: the model has {layers}, from 0 on");
        return Err(Failure::new(Exit::Usage, message));
    }
    let basis = Basis::of(args.gemm.stack(), &config)?;
    let pass = Pass::alone(0, args.start as usize, args.tokens as usize);
    let plan = qwen3::forward(&config, basis.contract(), pass)
        .map_err(|error| Failure::from(GenerateError::from(error)))?;

    let shown: Vec<_> = plan
        .steps
        .iter()
        .enumerate()
        .filter(|(_, step)| args.layer.is_none() || step.layer == args.layer)
        .collect();
    let json = serde_json::json!({
        "digest": plan.digest().to_string(),
        "stack": plan.stack.name(),
        "start": args.start,
        "tokens": args.tokens,
        "steps": shown.iter().map(|(index, step)| serde_json::json!({
            "index": index,
            "name": step.name,
            "op": step.op.to_string(),
            "recipe": step.recipe.to_string(),
            "rows": step.rows,
            "columns": step.columns,
            "dtype": step.dtype.name(),
        })).collect::<Vec<_>>(),
    });
    let text = if args.canonical {
        plan.canonical()
    } else {
        let mut text = format!("{:>4}  {:<34} {:<26} {:>12}\n", "step", "name", "recipe", "output");
        for (index, step) in shown {
            let (name, recipe) = (&step.name, step.recipe.to_string());
            let shape = format!("{}x{} {}", step.rows, step.columns, step.dtype.name());
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{index:>4}  {name:<34} {recipe:<26} {shape:>12}");
        }
        let _ = write!(text, "plan digest {}", plan.digest());
        text
    };
    output.result(&json, &text);
    Ok(Exit::Success)
}
