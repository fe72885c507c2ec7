//! `attest catalog`: dispatch catalogues, shown, measured and checked.

#[cfg(feature = "cuda")]
mod measure;
mod show;
#[cfg(feature = "cuda")]
mod text;

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand};

use super::error::Failure;
use super::output::Output;
use super::{CommandResult, Exit, paths};
use crate::model::synth::shapes;
use crate::recipe::catalog::Catalog;
use crate::recipe::catalog::listing::MAX_M;

/// Arguments of `attest catalog`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Measure on this GPU which algorithm every product of a model gets, and compare each
    /// with the emulator.
    Build(Build),
    /// Measure again on this GPU and compare with a catalogue.
    Check(Check),
    /// Print what a catalogue lists.
    Show(show::Args),
}

#[derive(ClapArgs, Debug)]
struct Build {
    #[command(flatten)]
    of: Model,
    /// The new catalogue's id.
    #[arg(long)]
    id: String,
    /// Largest number of rows of a product.
    #[arg(long, value_name = "M", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=MAX_M as i64))]
    max_m: u32,
    /// Where to write it [default: ID.json].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A model, by its shape or its folder.
#[derive(ClapArgs, Debug)]
#[group(required = true, multiple = false)]
struct Model {
    /// A published shape.
    #[arg(long, value_parser = PossibleValuesParser::new(shapes()))]
    config: Option<String>,
    /// Model name or folder; of it only config.json is read.
    #[arg(long)]
    model: Option<String>,
}

#[derive(ClapArgs, Debug)]
struct Check {
    /// Id or file of the catalogue.
    catalogue: String,
}

/// Does what is asked.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    match &args.action {
        Action::Show(args) => show::run(args, output),
        #[cfg(feature = "cuda")]
        Action::Build(args) => measure::build(args, output),
        #[cfg(feature = "cuda")]
        Action::Check(args) => measure::check(args, output),
        #[cfg(not(feature = "cuda"))]
        Action::Build(Build { of, id, max_m, out }) => {
            let asked = (&of.config, &of.model, id, max_m, out);
            Err(no_engine(&format!("{asked:?}")))
        }
        #[cfg(not(feature = "cuda"))]
        Action::Check(Check { catalogue }) => open(catalogue).and_then(|c| Err(no_engine(c.id()))),
    }
}

#[cfg(not(feature = "cuda"))]
fn no_engine(_asked: &str) -> Failure {
    Failure::new(Exit::Incomplete, "this build has no CUDA engine")
        .hint("build with `cargo build --release --features cuda`")
}

/// One of the crate's own catalogues by its id, else a file.
fn open(named: &str) -> Result<Catalog, Failure> {
    if Catalog::ids().any(|id| id == named) {
        return Catalog::by_id(named)
            .map_err(|error| Failure::new(Exit::Internal, error.to_string()));
    }
    let path = Path::new(named);
    if !path.exists() {
        let known: Vec<&str> = Catalog::ids().collect();
        let message = format!("no catalogue and no file is named {named}");
        return Err(Failure::new(Exit::Usage, message)
            .hint(format!("the catalogues are {}", known.join(", "))));
    }
    let bytes = paths::read(path)?;
    let malformed = |what: String| Failure::new(Exit::Malformed, format!("{named}: {what}"));
    let text = String::from_utf8(bytes).map_err(|error| malformed(error.to_string()))?;
    let id = serde_json::from_str::<serde_json::Value>(&text)
        .map_err(|error| malformed(format!("not a catalogue, which is JSON: {error}")))?
        .get("id")
        .and_then(|id| id.as_str().map(str::to_owned))
        .ok_or_else(|| malformed("it has no id".into()))?;
    Catalog::parse(&id, &text).map_err(|error| malformed(error.to_string()))
}
