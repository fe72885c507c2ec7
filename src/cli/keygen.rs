//! `attest keygen`: a key pair, and the lines a verifier adds to a trust file.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::error::Failure;
use super::output::Output;
use super::{CommandResult, Exit, paths};
use crate::transcript::key::PrivateKey;

/// Arguments of `attest keygen`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Where to write the private key [default: key.pem in the configuration folder].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Name of the signer, for the trust entry.
    #[arg(long, default_value = "prover")]
    name: String,
}

/// Draws a key, writes it to a new file and prints its public half.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let path = match &args.out {
        Some(path) => path.clone(),
        None => paths::key().ok_or_else(|| paths::no_folder("--out"))?,
    };
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| {
        Failure::new(Exit::Internal, format!("the system gives no random bytes: {error}"))
    })?;
    let key = PrivateKey::from_seed(&seed);
    seed.fill(0);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", folder.display())))?;
    }
    key.write_new(&path).map_err(|error| {
        Failure::new(Exit::Usage, error.to_string())
            .hint("a key is never overwritten; move the old one away or name another file")
    })?;
    let public = key.public();
    let name = toml::Value::from(args.name.as_str());
    let entry = format!(
        "[[key]]\nname = {name}\npublic_key = \"{}\"\nrole = \"prover\"\nmodels = \"*\"",
        public.to_hex()
    );
    let json = serde_json::json!({
        "private_key_file": path, "key_id": public.id().to_string(),
        "public_key": public.to_hex(), "trust_entry": entry,
    });
    let text = format!(
        "private key {}\nkey id      {}\n\nfor the trust file of whoever verifies:\n\n{entry}",
        path.display(),
        public.id()
    );
    output.result(&json, &text);
    Ok(Exit::Success)
}
