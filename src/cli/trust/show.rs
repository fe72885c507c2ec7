//! `attest trust show`: who may sign what, and when.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args as ClapArgs;
use serde_json::{Value, json};

use crate::cli::error::Failure;
use crate::cli::output::{Output, plain};
use crate::cli::{CommandResult, Exit, paths, verify};
use crate::verify::trust::{Models, Role, Standing, TrustedKey, rfc3339};

/// Arguments of `attest trust show`.
#[derive(ClapArgs, Debug)]
pub(in crate::cli) struct Args {
    /// Trust file [default: trust.toml in the configuration folder].
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

/// Reads the file and prints every entry; exits 0 if it can be used.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let Some(trust) = verify::read_trust(args.trust.as_deref())? else {
        let place = paths::trust().ok_or_else(|| paths::no_folder("--trust"))?;
        let message = format!("there is no trust file at {}", place.display());
        return Err(Failure::new(Exit::Usage, message).hint("name one with --trust"));
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (path, keys, at) = (trust.path.display().to_string(), trust.store.keys(), rfc3339(now));
    let entries = if keys.len() == 1 { "entry" } else { "entries" };
    let mut text =
        format!("{} (SHA-256 {}): {} {entries}\n", plain(&path), trust.digest, keys.len());
    let auditors = trust.store.policy().auditors;
    if auditors > 0 {
        let _ = writeln!(text, "policy: counter-signatures demanded: {auditors}");
    }
    let mut list = Vec::with_capacity(keys.len());
    for entry in keys {
        let standing = trust.store.standing(entry, now);
        text.push_str(&lines(entry, standing, &at));
        list.push(value(entry, standing));
    }
    let json = json!({
        "trust_file": path, "trust_file_sha256": trust.digest.to_string(), "at": at,
        "policy": { "auditors": auditors }, "keys": list,
    });
    output.result(&json, &text);
    Ok(Exit::Success)
}

fn lines(entry: &TrustedKey, standing: Standing, at: &str) -> String {
    let mut text = format!("\n{:?}\n", plain(&entry.name));
    let mut line = |name: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    line("key", &format!("{}, id {}", entry.key.to_hex(), entry.key.id()));
    let signs = match entry.role {
        Role::Prover => "transcripts",
        Role::Auditor => "reports on transcripts and counter-signatures",
        Role::Publisher => "models",
    };
    let of = match &entry.models {
        Models::Any => "every model".into(),
        Models::Listed(models) => {
            let models: Vec<_> = models.iter().map(|model| plain(model)).collect();
            models.join(", ")
        }
    };
    line("may sign", &format!("as {}: {signs}, of {of}", entry.role.word()));
    let limit = |word: &str, limit: Option<u64>| match limit {
        Some(limit) => format!("{word} {}", rfc3339(limit)),
        None => format!("{word} any time"),
    };
    let (from, until) = (entry.valid_from, entry.valid_until);
    let window = match (from, until) {
        (None, None) => "always".to_owned(),
        _ => format!("{}, {}", limit("from", from), limit("before", until)),
    };
    line("window", &window);
    if let Some(revocation) = &entry.revocation {
        line("revoked", &format!("{}: {}", rfc3339(revocation.at), plain(&revocation.reason)));
    }
    let why = match standing {
        Standing::Revoked if entry.revocation.is_none() => ", in another entry of this key",
        Standing::Revoked | Standing::Valid | Standing::Early | Standing::Late => "",
    };
    line("now", &format!("{}{why}, at {at} by this clock", standing.word()));
    text
}

fn value(entry: &TrustedKey, standing: Standing) -> Value {
    let models = match &entry.models {
        Models::Any => json!("*"),
        Models::Listed(models) => json!(models),
    };
    json!({
        "name": entry.name,
        "public_key": entry.key.to_hex(),
        "key_id": entry.key.id().to_string(),
        "role": entry.role.word(),
        "models": models,
        "valid_from": entry.valid_from.map(rfc3339),
        "valid_until": entry.valid_until.map(rfc3339),
        "revoked_at": entry.revocation.as_ref().map(|revocation| rfc3339(revocation.at)),
        "reason": entry.revocation.as_ref().map(|revocation| &revocation.reason),
        "now": standing.word(),
    })
}
