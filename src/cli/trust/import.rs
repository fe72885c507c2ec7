//! `attest trust import allowed_signers`: OpenSSH's list as entries of a trust file.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::json;

use super::roles;
use crate::cli::error::Failure;
use crate::cli::output::Output;
use crate::cli::{CommandResult, Exit, paths};
use crate::verify::trust::allowed_signers::{self, Line, Signer};
use crate::verify::trust::{Models, Role, TrustStore, TrustedKey};

/// Arguments of `attest trust import allowed_signers`.
#[derive(ClapArgs, Debug)]
pub(in crate::cli) struct Args {
    /// The list.
    file: PathBuf,
    /// Take the keys that may sign in this namespace.
    #[arg(long, default_value = "attest")]
    namespace: String,
    /// What the keys may be used for.
    #[arg(long, value_parser = roles(), default_value = "prover")]
    role: Role,
    /// For which models: names or manifest digests with commas between them [default: all].
    #[arg(long, value_delimiter = ',', value_name = "MODELS")]
    models: Vec<String>,
    /// Refuse the list if a key would be skipped, or a time has no Z.
    #[arg(long)]
    strict: bool,
    /// Where to write the entries [default: print them].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace files that exist.
    #[arg(long)]
    overwrite: bool,
}

/// Reads the list, prints or writes the entries, and says what was left out.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let refused = |why: String| Failure::new(Exit::Usage, format!("{}: {why}", shown(args)));
    let bytes = paths::read(&args.file)?;
    let text = String::from_utf8(bytes).map_err(|_| refused("not text".into()))?;
    let lines = allowed_signers::read(&text, &args.namespace)
        .map_err(|error| refused(error.to_string()))?;
    let models = match args.models.as_slice() {
        [] => Models::Any,
        [star] if star == "*" => Models::Any,
        models => Models::Listed(models.to_vec()),
    };
    let (mut entries, mut skipped) = (Vec::new(), Vec::new());
    for line in lines {
        let noted = match line {
            Line::Signer(signer) => {
                let noted = signer.local_time.then(|| (signer.line, LOCAL.to_owned()));
                entries.push(entry(*signer, args.role, &models).to_toml());
                noted
            }
            Line::Skipped { line, principals, reason } => {
                skipped.push(json!({ "line": line, "principals": principals, "reason": reason }));
                Some((line, format!("{principals:?} is skipped: {reason}")))
            }
        };
        let Some((line, what)) = noted else { continue };
        if args.strict {
            let failure = refused(format!("line {line}: {what}"));
            return Err(failure.hint("without --strict this is a note"));
        }
        output.note(&format!("note: {}, line {line}: {what}", shown(args)));
    }
    if entries.is_empty() {
        return Err(refused(format!("no key in it is for namespace {:?}", args.namespace)));
    }
    let toml = entries.join("\n\n") + "\n";
    // What cannot be read again is not handed out: "*" in a list of models, for one.
    TrustStore::from_toml(&toml).map_err(|error| refused(error.to_string()))?;
    let text = match &args.out {
        None => toml.clone(),
        Some(out) => {
            let read = std::fs::canonicalize(&args.file).unwrap_or_else(|_| args.file.clone());
            let place = paths::Pending::create(out, args.overwrite, &[&read])?;
            place.finish(toml.as_bytes())?;
            let words = if entries.len() == 1 { "entry" } else { "entries" };
            format!("{} {words} written to {}", entries.len(), out.display())
        }
    };
    let json = json!({
        "entries": entries.len(), "skipped": skipped, "trust_entries": toml, "written_to": args.out,
    });
    output.result(&json, &text);
    Ok(Exit::Success)
}

fn shown(args: &Args) -> String {
    args.file.display().to_string()
}

fn entry(signer: Signer, role: Role, models: &Models) -> TrustedKey {
    let Signer { principals, key, valid_from, valid_until, .. } = signer;
    TrustedKey {
        name: principals,
        key,
        role,
        models: models.clone(),
        valid_from,
        valid_until,
        revocation: None,
    }
}

const LOCAL: &str = "a time without Z is taken as UTC; OpenSSH takes it in the machine's time zone";
