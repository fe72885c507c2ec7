//! `attest keygen`: a key pair, and the lines a verifier adds to a trust file.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use zeroize::Zeroizing;

use super::error::Failure;
use super::output::Output;
use super::passphrase::Source;
use super::{CommandResult, Exit, paths, signer, trust};
use crate::transcript::key::PrivateKey;
use crate::verify::trust::{Models, Role, TrustedKey};

/// Arguments of `attest keygen`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Where to write the private key [default: key.pem in the configuration folder, or
    /// auditor.pem, publisher.pem].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What the key will sign: transcripts (prover), reports (auditor), models (publisher).
    #[arg(long, value_parser = trust::roles(), default_value = "prover")]
    role: Role,
    /// Name of the signer, for the trust entry [default: the role].
    #[arg(long)]
    name: Option<String>,
    /// Write the key under a passphrase.
    #[arg(long)]
    encrypt: bool,
    #[command(flatten)]
    passphrase: Source,
}

/// Draws a key, writes it to a new file and prints its public half.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let path = match &args.out {
        Some(path) => path.clone(),
        None => paths::key_of(args.role).ok_or_else(|| paths::no_folder("--out"))?,
    };
    if !args.encrypt && args.passphrase.file().is_some() {
        let message = "--passphrase-file is for a key that is written with --encrypt";
        return Err(Failure::new(Exit::Usage, message));
    }
    if path.exists() {
        let message = format!("{} exists; no key was made", path.display());
        return Err(Failure::new(Exit::Usage, message).hint(KEPT));
    }
    let passphrase = args.encrypt.then(|| args.passphrase.of_new(&path)).transpose()?;
    let mut seed = Zeroizing::new([0; 32]);
    random(seed.as_mut_slice())?;
    let key = PrivateKey::from_seed(&seed);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", folder.display())))?;
    }
    let written = match &passphrase {
        None => key.write_new(&path),
        Some(passphrase) => {
            let (mut salt, mut iv) = ([0; 16], [0; 16]);
            random(&mut salt)?;
            random(&mut iv)?;
            key.write_new_encrypted(&path, passphrase, &salt, iv)
        }
    };
    written.map_err(|error| signer::refused(&path, &error).hint(KEPT))?;
    let public = key.public();
    let entry = TrustedKey {
        name: args.name.clone().unwrap_or_else(|| args.role.word().to_owned()),
        key: public,
        role: args.role,
        models: Models::Any,
        valid_from: None,
        valid_until: None,
        revocation: None,
    };
    let entry = entry.to_toml();
    let json = serde_json::json!({
        "private_key_file": path, "encrypted": args.encrypt, "role": args.role.word(),
        "key_id": public.id().to_string(), "public_key": public.to_hex(), "trust_entry": entry,
    });
    let under = if args.encrypt { ", under the passphrase" } else { "" };
    let text = format!(
        "private key {}{under}\nkey id      {}\n\nfor the trust file of whoever verifies:\n\n{entry}",
        path.display(),
        public.id()
    );
    output.result(&json, &text);
    Ok(Exit::Success)
}

fn random(bytes: &mut [u8]) -> Result<(), Failure> {
    getrandom::fill(bytes).map_err(|error| {
        Failure::new(Exit::Internal, format!("the system gives no random bytes: {error}"))
    })
}

const KEPT: &str = "a key is never overwritten; move the old one away or name another file";
