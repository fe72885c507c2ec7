//! `attest diff`: two transcripts compared claim by claim, without a model.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use serde_json::json;

use super::error::Failure;
use super::output::{Output, plain};
use super::{CommandResult, Exit, file};
use crate::transcript::Transcript;
use crate::transcript::diff::fields::FieldDifference;
use crate::transcript::diff::outputs::{FirstRow, LogitsComparison, Outputs, TraceComparison};
use crate::transcript::diff::{Comparison, compare};
use crate::verify::report::valued;

/// Arguments of `attest diff`.
#[derive(ClapArgs, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The first transcript, A; `-` reads it from standard input.
    a: PathBuf,
    /// The second transcript, B; `-` reads it from standard input.
    b: PathBuf,
}

const AFTER_HELP: &str = "\
No signature is checked and nothing is executed: two files are compared with each other.

Exit code 0 if they state one computation with the same recorded outputs, 1 if anything differs that a
re-execution is checked against. What two runs of one computation may differ in is listed and does not
count: signature, key_id, claimed_time, nonce, tool, model.oms_root, the versions of driver and CUDA
(environment.gpu.driver, .cuda_driver, .cuda_runtime), and extensions (optional keys that are not known).";

/// Compares the two files and prints what differs.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    if args.a == Path::new("-") && args.b == Path::new("-") {
        return Err(Failure::new(Exit::Usage, "standard input can be one of the two files only"));
    }
    let (a, b) = (file::transcript(&args.a)?, file::transcript(&args.b)?);
    let comparison = compare(&a, &b);
    let is_different = comparison.is_different();
    let file = |path: &Path, transcript: &Transcript| {
        json!({
            "transcript_file": path,
            "digest": transcript.digest().to_string(),
            "key_id": transcript.key_id().to_string(),
        })
    };
    let json = json!({
        "checked": false,
        "different": is_different,
        "a": file(&args.a, &a),
        "b": file(&args.b, &b),
        "fields": comparison.fields,
        "logits": comparison.logits,
        "trace": comparison.trace,
    });
    let mut text = String::from(
        "NOT CHECKED: no signature, no computation; what two files state is compared\n",
    );
    for (name, path, transcript) in [("A", &args.a, &a), ("B", &args.b, &b)] {
        let path = path.display().to_string();
        let _ = writeln!(text, "{name:<12} {} {}", transcript.digest(), plain(&path));
    }
    text.push_str(&as_text(&comparison));
    text.push_str(if is_different { "DIFFERENT\n" } else { "THE SAME\n" });
    output.result(&json, &text);
    Ok(if is_different { Exit::Mismatch } else { Exit::Success })
}

fn as_text(comparison: &Comparison) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for field in comparison.fields.iter().filter(|field| field.counts) {
        let _ = writeln!(text, "{:<12} {}", "differs", line(field));
    }
    let _ = writeln!(text, "{:<12} {}", "logits", logits(&comparison.logits));
    let _ = writeln!(text, "{:<12} {}", "trace", trace(&comparison.trace));
    for field in comparison.fields.iter().filter(|field| !field.counts) {
        let _ = writeln!(text, "{:<12} {}", "not counted", line(field));
    }
    text
}

fn line(field: &FieldDifference) -> String {
    let at = field.at.as_ref().map(|at| format!(", {}", plain(at))).unwrap_or_default();
    format!("{}{at}: A {}; B {}", field.field, plain(&field.a), plain(&field.b))
}

fn logits(outputs: &Outputs<LogitsComparison>) -> String {
    let logits = match outputs {
        Outputs::NotCompared { reason } => return format!("not compared: {reason}"),
        Outputs::Compared(logits) => logits,
    };
    let Some(FirstRow { row, pass, position, element }) = &logits.first else {
        return format!("none of {} rows differs", logits.rows);
    };
    let mut text = format!("{} of {} rows differ", logits.differing_rows, logits.rows);
    if let Some(elements) = logits.differing_elements {
        let _ = write!(text, ", {elements} elements");
    }
    let _ = write!(text, "; first row {row} (pass {pass}, position {position})");
    if let Some(element) = element {
        let _ = write!(
            text,
            ": element {} is {} in A, {} in B, {} of {} differ",
            element.column,
            valued(&element.a),
            valued(&element.b),
            element.differing,
            element.elements
        );
    }
    text
}

fn trace(outputs: &Outputs<TraceComparison>) -> String {
    let trace = match outputs {
        Outputs::NotCompared { reason } => return format!("not compared: {reason}"),
        Outputs::Compared(trace) => trace,
    };
    let Some(first) = &trace.first else {
        return format!("none of {} outputs differs", trace.outputs);
    };
    let mut text = format!("{} of {} outputs differ; first ", trace.differing, trace.outputs);
    let _ = write!(text, "pass {}", first.pass);
    if let Some(position) = first.position {
        let _ = write!(text, ", position {position}");
    }
    if let Some(layer) = first.layer {
        let _ = write!(text, ", layer {layer}");
    }
    if let Some(index) = first.step_index {
        let _ = write!(text, ", step {index}");
    }
    if let Some(step) = &first.step {
        let _ = write!(text, " {step}");
    }
    let _ = write!(text, ": A {}; B {}", first.a, first.b);
    text
}
