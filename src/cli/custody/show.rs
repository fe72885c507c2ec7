//! `attest custody show`: the entries, as their signers wrote them.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::{Value, json};

use super::read;
use crate::cli::output::{Output, plain};
use crate::cli::{CommandResult, Exit};
use crate::transcript::custody::Logged;
use crate::verify::trust::rfc3339;

/// Arguments of `attest custody show`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// The log.
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
}

/// Prints every entry of a log whose chain holds.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let log = read(&args.log)?;
    let rows: Vec<Value> = log.entries().iter().map(row).collect();
    let blocks: Vec<String> = log.entries().iter().map(block).collect();
    let head = log.head().map(|head| head.to_string());
    let json = json!({ "checked": false, "entries": rows, "head": head });
    let text = format!(
        "{}\nhead {}\nthe chain holds; no signature was checked (attest custody check)",
        blocks.join("\n"),
        head.as_deref().unwrap_or("none")
    );
    output.result(&json, &text);
    Ok(Exit::Success)
}

fn row(logged: &Logged) -> Value {
    let entry = &logged.entry;
    json!({
        "number": entry.number,
        "time": rfc3339(entry.time),
        "action": entry.action.word(),
        "transcript": entry.transcript.to_string(),
        "verdict": entry.verdict.map(|verdict| verdict.word()),
        "report_sha256": entry.report.map(|digest| digest.to_string()),
        "note": entry.note,
        "key_id": logged.envelope.key_id.to_string(),
        "tool": format!("{} {}", entry.tool.name, entry.tool.version),
        "tables": entry.tables.to_string(),
        "digest": logged.digest.to_string(),
    })
}

fn block(logged: &Logged) -> String {
    let entry = &logged.entry;
    let (number, at, action) = (entry.number, rfc3339(entry.time), entry.action.word());
    let (id, tool) = (logged.envelope.key_id, &entry.tool);
    let mut block = format!("{number:<4} {at} {action} transcript {}", entry.transcript);
    if let (Some(verdict), Some(report)) = (entry.verdict, entry.report) {
        block += &format!("\n     {}, report {report}", verdict.word());
    }
    if let Some(note) = &entry.note {
        block += &format!("\n     note {note:?}");
    }
    let (name, version) = (plain(&tool.name), plain(&tool.version));
    block + &format!("\n     by key {id}, {name} {version}, tables {}", entry.tables)
}
