//! `attest model digest`: the digests that identify a model folder.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::json;

use crate::cli::output::{Output, plain};
use crate::cli::{CommandResult, Exit};
use crate::model::manifest::{Manifest, OMS_SIGNATURE, oms_files, oms_root_of};
use crate::model::{Model, ModelError};
use crate::transcript::capture;

/// Arguments of `attest model digest`.
#[derive(ClapArgs, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The folder; any, not only one of a model that can be run.
    folder: PathBuf,
}

const AFTER_HELP: &str = "\
The first line is the root of OpenSSF Model Signing v1.0: of every file, without .git, .gitignore,
.gitattributes and .github at the top, nor model.sig. It covers neither names nor lengths. The manifest
digest, which a transcript carries, covers path, length and content of the files that define the model.";

/// Digests the folder and prints what identifies it.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    // A folder that is no model has a root all the same.
    let model: Result<Model, ModelError> = Model::open(&args.folder);
    let none = Manifest::default();
    let known = model.as_ref().map_or(&none, Model::manifest);
    let files = oms_files(&args.folder, &[OMS_SIGNATURE], known)?;
    let root = oms_root_of(&files);
    let manifest = model.as_ref().map(capture::manifest);
    let json = json!({
        "oms_root": root.to_string(),
        "oms_files": files.iter().map(|file| json!({
            "path": file.path, "sha256": file.sha256.to_string(),
        })).collect::<Vec<_>>(),
        "manifest_digest": manifest.as_ref().ok().map(|manifest| manifest.digest.to_string()),
        "manifest_files": manifest.as_ref().ok().map(|manifest| {
            manifest.files.iter().map(|file| json!({
                "path": file.path, "len_bytes": file.len_bytes, "sha256": file.sha256.to_string(),
            })).collect::<Vec<_>>()
        }),
        "no_manifest": manifest.as_ref().err().map(ToString::to_string),
    });
    let second = match &manifest {
        Ok(manifest) => {
            format!("manifest {} of {} files", manifest.digest, manifest.files.len())
        }
        Err(error) => {
            format!("manifest none, no model that this program runs: {}", plain(&error.to_string()))
        }
    };
    output.result(&json, &format!("sha256:{root}\n{second}"));
    Ok(Exit::Success)
}
