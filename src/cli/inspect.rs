//! `attest inspect`: what a transcript states, without checking it.

use std::fmt::Write as _;
use std::path::PathBuf;

use ciborium::Value as Cbor;
use clap::Args as ClapArgs;
use serde_json::{Value, json};

use super::output::{Output, plain};
use super::{CommandResult, Exit, file};
use crate::num::Digest;
use crate::transcript::Transcript;
use crate::transcript::statement::{DispatchRow, Environment, Statement};

/// Arguments of `attest inspect`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// The transcript; `-` reads it from standard input.
    transcript: PathBuf,
}

/// Parses the file and prints its statement.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let transcript = file::transcript(&args.transcript)?;
    let statement = transcript.statement();
    let mut json = as_json(statement);
    json["digest"] = transcript.digest().to_string().into();
    json["key_id"] = transcript.key_id().to_string().into();
    json["checked"] = Value::Bool(false);
    json["withheld"] = json!(withheld(&transcript));
    json["openings"] = match transcript.opening() {
        None => Value::Null,
        Some(opening) => json!({
            "cells": opening.draw.as_ref().map(|draw| draw.cells),
            "nonce": opening.draw.as_ref().map(|draw| hex::encode(&draw.nonce)),
            "len_bytes": opening.contents.end - opening.contents.start,
        }),
    };
    output.result(&json, &as_text(statement, &transcript));
    Ok(Exit::Success)
}

/// Kinds of the sections that are stated and not in the file.
fn withheld(transcript: &Transcript) -> Vec<&str> {
    let sections = transcript.statement().sections.iter();
    sections.map(|s| s.kind.as_str()).filter(|kind| transcript.withholds(kind)).collect()
}

fn as_text(statement: &Statement, transcript: &Transcript) -> String {
    let mut text = String::from("NOT CHECKED: claims of whoever signed this file\n");
    let mut line = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<12} {}", plain(&value));
    };
    line("transcript", transcript.digest().to_string());
    line("key id", transcript.key_id().to_string());
    line("tool", format!("{} {}", statement.tool.name, statement.tool.version));
    line("model", format!("{} ({})", statement.model.name, statement.model.digest));
    for file in &statement.model.files {
        line("", format!("{} {} {} bytes", file.sha256, file.path, file.len_bytes));
    }
    line("profile", format!("{} ({})", statement.profile.id, statement.profile.digest));
    line("catalogue", format!("{} ({})", statement.catalogue.id, statement.catalogue.digest));
    line("engine", statement.environment.engine.word().into());
    if let Some(gpu) = &statement.environment.gpu {
        let (driver, cuda) = (&gpu.driver, &gpu.cuda_driver);
        line("GPU", format!("{}, driver {driver}, CUDA {cuda}", gpu.name));
        line("libraries", format!("cuBLASLt {}, NVRTC {}", gpu.cublaslt, gpu.nvrtc));
        line("kernels", format!("{} sources, {}", gpu.kernels.len(), gpu.nvrtc_options.join(" ")));
    }
    line("stack", format!("{}, numerics {}", statement.stack, statement.numerics));
    let sampling = &statement.sampling;
    line("sampling", format!("{}, at most {}", sampling.rule, sampling.max_new_tokens));
    line("prompt", String::from_utf8_lossy(&statement.prompt).escape_debug().to_string());
    line("tokens in", format!("{:?}", statement.tokens_in));
    line("tokens out", format!("{:?}", statement.tokens_out));
    line("finish", statement.finish.word().into());
    line("dispatch", format!("{} rows", statement.dispatch.len()));
    let together = statement.passes.iter().filter(|pass| pass.batch.is_some()).count();
    let together = match together {
        0 => String::new(),
        some => format!(", {some} of them launched with passes of other sequences"),
    };
    line("passes", format!("{}{together}", statement.passes.len()));
    let (mode, count) = (statement.logits.mode.word(), statement.logits.count);
    line("logits", format!("{mode}, {count} rows of {}", statement.logits.vocab));
    line("trace", format!("{}, {} outputs", statement.trace.mode.word(), statement.trace.count));
    let withheld = withheld(transcript);
    if !withheld.is_empty() {
        line("withheld", withheld.join(", "));
    }
    if let Some(opening) = transcript.opening() {
        let length = opening.contents.end - opening.contents.start;
        line(
            "openings",
            match &opening.draw {
                None => format!("every cell, {length} bytes"),
                Some(draw) => format!(
                    "{} cells drawn from {}, {length} bytes",
                    draw.cells,
                    hex::encode(&draw.nonce)
                ),
            },
        );
    }
    line("claimed time", format!("{} s since 1970 (UTC)", statement.claimed_time));
    if let Some(nonce) = &statement.nonce {
        line("nonce", hex::encode(nonce));
    }
    for extension in &statement.extensions {
        line(&format!("key {}", extension.key), diagnostic(&extension.value));
    }
    text
}

/// The statement as JSON, every field.
fn as_json(statement: &Statement) -> Value {
    let root = |root: Option<Digest>| root.map(|digest| digest.to_string());
    json!({
        "format_version": statement.format_version,
        "tool": { "name": statement.tool.name, "version": statement.tool.version },
        "numerics": statement.numerics,
        "model": {
            "name": statement.model.name,
            "digest": statement.model.digest.to_string(),
            "oms_root": root(statement.model.oms_root),
            "files": statement.model.files.iter().map(|file| json!({
                "path": file.path, "len_bytes": file.len_bytes,
                "sha256": file.sha256.to_string(),
            })).collect::<Vec<_>>(),
        },
        "profile": {
            "id": statement.profile.id, "digest": statement.profile.digest.to_string(),
        },
        "catalogue": {
            "id": statement.catalogue.id, "digest": statement.catalogue.digest.to_string(),
        },
        "environment": environment(&statement.environment),
        "stack": statement.stack,
        "sampling": {
            "rule": statement.sampling.rule,
            "max_new_tokens": statement.sampling.max_new_tokens,
            "stop_ids": statement.sampling.stop_ids,
            "recorded": statement.sampling.recorded,
        },
        "prompt": {
            "text": String::from_utf8_lossy(&statement.prompt),
            "hex": hex::encode(&statement.prompt),
        },
        "tokens_in": statement.tokens_in,
        "tokens_out": statement.tokens_out,
        "finish": statement.finish.word(),
        "dispatch": statement.dispatch.iter().map(dispatch).collect::<Vec<_>>(),
        "passes": statement.passes.iter().map(|pass| json!({
            "start_position": pass.start_position, "token_count": pass.token_count,
            "plan_digest": pass.plan_digest.to_string(), "logits_rows": pass.logits_rows,
            "batch": pass.batch.map(|batch| json!({ "passes": batch.passes, "rows": batch.rows })),
        })).collect::<Vec<_>>(),
        "logits": {
            "mode": statement.logits.mode.word(), "count": statement.logits.count,
            "vocab": statement.logits.vocab, "dtype": statement.logits.dtype.name(),
            "root": statement.logits.root.to_string(),
        },
        "trace": {
            "mode": statement.trace.mode.word(), "count": statement.trace.count,
            "root": root(statement.trace.root),
        },
        "sections": statement.sections.iter().map(|section| json!({
            "kind": section.kind, "len_bytes": section.len_bytes,
            "leaf_count": section.leaf_count, "sha256": section.sha256.to_string(),
        })).collect::<Vec<_>>(),
        "claimed_time": statement.claimed_time,
        "nonce": statement.nonce.as_ref().map(hex::encode),
        "extensions": statement.extensions.iter().map(|extension| json!({
            "key": extension.key, "cbor": diagnostic(&extension.value),
        })).collect::<Vec<_>>(),
    })
}

/// A value of an unknown key in CBOR diagnostic notation (RFC 8949, section 8).
///
/// The last two arms are for a reader of `Value`: what they print was refused
/// when the statement was read.
fn diagnostic(value: &Cbor) -> String {
    match value {
        Cbor::Integer(integer) => i128::from(*integer).to_string(),
        Cbor::Bytes(bytes) => format!("h'{}'", hex::encode(bytes)),
        // JSON's escapes are those of the notation.
        Cbor::Text(text) => Value::from(text.as_str()).to_string(),
        Cbor::Array(items) => {
            let items: Vec<String> = items.iter().map(diagnostic).collect();
            format!("[{}]", items.join(", "))
        }
        Cbor::Map(pairs) => {
            let pair =
                |(key, value): &(Cbor, Cbor)| format!("{}: {}", diagnostic(key), diagnostic(value));
            let pairs: Vec<String> = pairs.iter().map(pair).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Cbor::Float(_) | Cbor::Bool(_) | Cbor::Null | Cbor::Tag(..) => format!("{value:?}"),
        _ => "a value of another kind".to_owned(),
    }
}

fn environment(environment: &Environment) -> Value {
    let gpu = environment.gpu.as_ref().map(|gpu| {
        json!({
            "name": gpu.name, "driver": gpu.driver, "cuda_driver": gpu.cuda_driver,
            "cuda_runtime": gpu.cuda_runtime, "cublaslt": gpu.cublaslt, "nvrtc": gpu.nvrtc,
            "kernels": gpu.kernels.iter().map(|kernel| json!({
                "name": kernel.name, "sha256": kernel.sha256.to_string(),
            })).collect::<Vec<_>>(),
            "nvrtc_options": gpu.nvrtc_options,
        })
    });
    json!({ "engine": environment.engine.word(), "gpu": gpu })
}

fn dispatch(row: &DispatchRow) -> Value {
    let algorithm = row.algorithm.as_ref().map(|algorithm| {
        json!({
            "id": algorithm.id, "tile": algorithm.tile, "stages": algorithm.stages,
            "split_k": algorithm.split_k, "reduction_scheme": algorithm.reduction_scheme,
            "swizzle": algorithm.swizzle, "custom_option": algorithm.custom_option,
            "inner_shape": algorithm.inner_shape, "cluster_shape": algorithm.cluster_shape,
            "workspace_bytes": algorithm.workspace_bytes,
        })
    });
    json!({
        "op": row.op, "m": row.m, "n": row.n, "k": row.k, "recipe": row.recipe,
        "algorithm": algorithm,
    })
}
