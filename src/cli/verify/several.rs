//! `attest verify` of several transcripts: a report of each, and one verdict.

use std::path::Path;

use super::{Args, Checked, Checker, hints};
use crate::cli::error::Failure;
use crate::cli::output::{Output, plain};
use crate::cli::{CommandResult, Exit, file, paths};
use crate::verify::report::Verdict;

/// Verifies one after the other and prints all reports, then the verdicts again.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    if args.dry_run {
        return Err(Failure::new(Exit::Usage, "--dry-run takes one transcript")
            .hint("run it for each; of one model, the weights are read and hashed for each"));
    }
    if args.challenge.is_some() {
        return Err(Failure::new(Exit::Usage, "--challenge takes one transcript")
            .hint("a challenge is for one; verify each by itself"));
    }
    // A name that is wrong costs no verification of the others.
    for path in &args.transcripts {
        if path == Path::new("-") {
            let message = "standard input can be verified by itself only";
            return Err(Failure::new(Exit::Usage, message));
        }
        paths::openable(path)?;
    }
    let checker = Checker::new(args, output)?;
    let mut checked: Vec<(&Path, Checked)> = Vec::with_capacity(args.transcripts.len());
    for path in &args.transcripts {
        checked.push((path, checker.check(file::input(path)?, None)?));
    }
    checker.remembered.save(output);
    let verdicts = || checked.iter().map(|(_, one)| one.report.verdict());
    let verdict = Verdict::of_several(verdicts()).unwrap_or(Verdict::Incomplete);
    output.result(&json(&checked, verdict), &text(&checked, verdict));
    // What helps with the worst helps with others of its kind.
    if let Some((_, worst)) = checked.iter().find(|(_, one)| one.report.verdict() == verdict) {
        hints(args, checker.trust.is_some(), &worst.report, output);
    }
    Ok(verdict.into())
}

fn text(checked: &[(&Path, Checked)], verdict: Verdict) -> String {
    let name = |path: &Path| plain(&path.display().to_string()).into_owned();
    let reports: String =
        checked.iter().map(|(path, one)| format!("{}\n{}\n", name(path), one.text)).collect();
    let line = |(path, one): &(&Path, Checked)| {
        format!("{:<12} {}\n", one.report.verdict().word(), name(path))
    };
    let lines: String = checked.iter().map(line).collect();
    format!("{reports}{lines}{}\n", verdict.word())
}

/// The object of each, with its file, under one verdict.
fn json(checked: &[(&Path, Checked)], verdict: Verdict) -> serde_json::Value {
    let one = |(path, one): &(&Path, Checked)| {
        let mut json = one.json.clone();
        json["transcript_file"] = serde_json::json!(path);
        json
    };
    serde_json::json!({
        "verdict": verdict.word(),
        "exit": verdict.exit_code(),
        "transcripts": checked.iter().map(one).collect::<Vec<_>>(),
    })
}
