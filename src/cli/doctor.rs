//! `attest doctor`: what this machine can run and verify.

use std::fmt::Write as _;

use clap::Args as ClapArgs;
use serde_json::json;

use super::basis::Basis;
use super::output::Output;
use super::{CommandResult, Exit, gpu, paths};
use crate::isa::mma::Simd;
use crate::isa::profile::Profile;
use crate::model::content::Configuration;
use crate::model::locate::Places;
use crate::plan::PLAN_VERSION;
use crate::recipe::catalog::Catalog;

/// Arguments of `attest doctor`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Also check that this model is understood (name or folder).
    #[arg(long)]
    model: Option<String>,
}

/// Looks at everything and prints it; exits 0 if a transcript can be verified.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let basis = Basis::general()?;
    let (profile, catalogue) = (&basis.profile, basis.catalogue());
    let threads = rayon::current_num_threads();
    let no_gpu = gpu::why_not(&basis.catalog);
    let device = no_gpu.clone().unwrap_or_else(gpu::describe);
    let found = |path: Option<std::path::PathBuf>| path.filter(|path| path.exists());
    let (key, trust) = (found(paths::key()), found(paths::trust()));
    let model = args.model.as_deref().map(model_state).transpose()?;

    let show = |path: &Option<std::path::PathBuf>, otherwise: &str| {
        path.as_ref().map_or(otherwise.to_owned(), |path| path.display().to_string())
    };
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<11} {value}");
    };
    line("attest", format!("{}, numerics {PLAN_VERSION}", env!("CARGO_PKG_VERSION")));
    line("emulator", format!("ready: {threads} threads, {}", Simd::detect().name()));
    line("GPU", device.clone());
    line("profile", format!("{} ({})", profile.id, profile.digest));
    line("catalogue", format!("{} ({})", catalogue.id, catalogue.digest));
    line("profiles", Profile::ids().collect::<Vec<_>>().join(", "));
    line("catalogues", Catalog::ids().collect::<Vec<_>>().join(", "));
    line("key", show(&key, "none: make one with `attest keygen` before `attest run`"));
    line("trust", show(&trust, "none: `attest verify` needs one, or --trust"));
    if let Some(model) = &model {
        line("model", model.clone());
    }
    let json = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "numerics": PLAN_VERSION,
        "threads": threads,
        "simd": Simd::detect().name(),
        "gpu_usable": no_gpu.is_none(),
        "gpu": device,
        "profile": { "id": profile.id, "digest": profile.digest.to_string() },
        "catalogue": { "id": catalogue.id, "digest": catalogue.digest.to_string() },
        "key_file": key,
        "trust_file": trust,
        "model": model,
    });
    output.result(&json, &text);
    Ok(Exit::Success)
}

fn model_state(name: &str) -> Result<String, super::Failure> {
    let folder = Places::from_env().resolve(name)?;
    let config = Configuration::read(&folder)?.config;
    Ok(format!(
        "{}: understood, {} layers, hidden {}, vocabulary {}, context {}",
        folder.display(),
        config.num_hidden_layers,
        config.hidden_size,
        config.vocab_size,
        config.max_position_embeddings
    ))
}
