//! Statements compared field by field.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::num::Digest;
use crate::transcript::Transcript;
use crate::transcript::statement::{
    Artifact, DispatchRow, Environment, Extension, GpuEnvironment, Logits, ManifestFile,
    ModelManifest, Pass, Sampling, Statement, Tool, Trace,
};

/// A field in which two statements differ.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FieldDifference {
    /// Path of the field, as `attest inspect --json` names it.
    pub field: String,
    /// Where in it, if it has parts: the first byte, token, pass or row that differs.
    pub at: Option<String>,
    /// What the first transcript has there.
    pub a: String,
    /// What the second transcript has there.
    pub b: String,
    /// Whether a re-execution is checked against it.
    pub counts: bool,
}

/// Fields that two runs of one computation may differ in: the signer's word, or what
/// makes a run another run. Every other field counts.
pub const NOT_COUNTED: [&str; 10] = [
    "tool",
    "model.oms_root",
    "environment.gpu.driver",
    "environment.gpu.cuda_driver",
    "environment.gpu.cuda_runtime",
    "claimed_time",
    "nonce",
    "extensions",
    "key_id",
    "signature",
];

/// Returns the fields that differ.
pub(super) fn differences(a: &Transcript, b: &Transcript) -> Vec<FieldDifference> {
    let mut fields = Fields(Vec::new());
    statement(&mut fields, a.statement(), b.statement());
    fields.show("key_id", &a.key_id().to_string(), &b.key_id().to_string());
    fields.show("signature", &hex::encode(a.signature()), &hex::encode(b.signature()));
    fields.0
}

/// Breaks when a field is added to the statement without a line here.
fn statement(fields: &mut Fields, a: &Statement, b: &Statement) {
    let Statement {
        format_version,
        tool: Tool { name, version },
        numerics,
        model,
        profile,
        catalogue,
        environment,
        stack,
        sampling,
        prompt,
        tokens_in,
        tokens_out,
        finish,
        dispatch,
        passes,
        logits,
        trace,
        sections: _, // follow from modes, counts and contents, which are compared
        claimed_time,
        nonce,
        extensions,
    } = a;
    fields.show("format_version", format_version, &b.format_version);
    fields.show(
        "tool",
        &format!("{name} {version}"),
        &format!("{} {}", b.tool.name, b.tool.version),
    );
    fields.show("numerics", numerics, &b.numerics);
    self::model(fields, model, &b.model);
    artifact(fields, "profile", profile, &b.profile);
    artifact(fields, "catalogue", catalogue, &b.catalogue);
    self::environment(fields, environment, &b.environment);
    fields.show("stack", stack, &b.stack);
    self::sampling(fields, sampling, &b.sampling);
    self::prompt(fields, prompt, &b.prompt);
    tokens(fields, "tokens_in", tokens_in, &b.tokens_in);
    tokens(fields, "tokens_out", tokens_out, &b.tokens_out);
    fields.show("finish", &finish.word(), &b.finish.word());
    self::dispatch(fields, dispatch, &b.dispatch);
    self::passes(fields, passes, &b.passes);
    commitments(fields, (logits, trace), (&b.logits, &b.trace));
    fields.show("claimed_time", claimed_time, &b.claimed_time);
    let nonce_of = |nonce: &Option<Vec<u8>>| or_none(nonce.as_ref().map(hex::encode));
    fields.show("nonce", &nonce_of(nonce), &nonce_of(&b.nonce));
    let keys = |extensions: &[Extension]| {
        let of = |e: &Extension| format!("{} = {:?}", e.key, e.value);
        format!("[{}]", extensions.iter().map(of).collect::<Vec<_>>().join(", "))
    };
    fields.show("extensions", &keys(extensions), &keys(&b.extensions));
}

fn model(fields: &mut Fields, a: &ModelManifest, b: &ModelManifest) {
    let ModelManifest { name, files, digest, oms_root } = a;
    fields.show("model.name", name, &b.name);
    fields.show("model.digest", digest, &b.digest);
    let paths: BTreeSet<&String> = files.iter().chain(&b.files).map(|file| &file.path).collect();
    let of = |file: Option<&ManifestFile>| {
        or_none(file.map(|file| format!("{} bytes, SHA-256 {}", file.len_bytes, file.sha256)))
    };
    for path in paths {
        fields.at("model.files", path, of(a.file(path)), of(b.file(path)));
    }
    let root = |root: Option<Digest>| or_none(root.map(|root| root.to_string()));
    fields.show("model.oms_root", &root(*oms_root), &root(b.oms_root));
}

fn artifact(fields: &mut Fields, field: &str, a: &Artifact, b: &Artifact) {
    fields.show(&format!("{field}.id"), &a.id, &b.id);
    fields.show(&format!("{field}.digest"), &a.digest, &b.digest);
}

fn environment(fields: &mut Fields, a: &Environment, b: &Environment) {
    fields.show("environment.engine", &a.engine.word(), &b.engine.word());
    let (Some(a), Some(b)) = (&a.gpu, &b.gpu) else {
        let name = |gpu: &Option<GpuEnvironment>| or_none(gpu.as_ref().map(|gpu| gpu.name.clone()));
        fields.show("environment.gpu", &name(&a.gpu), &name(&b.gpu));
        return;
    };
    let GpuEnvironment {
        name,
        driver,
        cuda_driver,
        cuda_runtime,
        cublaslt,
        nvrtc,
        kernels,
        nvrtc_options,
    } = a;
    fields.show("environment.gpu.name", name, &b.name);
    fields.show("environment.gpu.driver", driver, &b.driver);
    fields.show("environment.gpu.cuda_driver", cuda_driver, &b.cuda_driver);
    let runtime = |runtime: &Option<String>| or_none(runtime.clone());
    let field = "environment.gpu.cuda_runtime";
    fields.show(field, &runtime(cuda_runtime), &runtime(&b.cuda_runtime));
    fields.show("environment.gpu.cublaslt", cublaslt, &b.cublaslt);
    fields.show("environment.gpu.nvrtc", nvrtc, &b.nvrtc);
    fields.list("environment.gpu.kernels", "source", (kernels, &b.kernels), |kernel| {
        format!("{} {}", kernel.name, kernel.sha256)
    });
    let options = (&nvrtc_options[..], &b.nvrtc_options[..]);
    fields.list("environment.gpu.nvrtc_options", "option", options, String::clone);
}

fn sampling(fields: &mut Fields, a: &Sampling, b: &Sampling) {
    let Sampling { rule, max_new_tokens, stop_ids, recorded } = a;
    fields.show("sampling.rule", rule, &b.rule);
    fields.show("sampling.max_new_tokens", max_new_tokens, &b.max_new_tokens);
    fields.list("sampling.stop_ids", "id", (stop_ids, &b.stop_ids), u32::to_string);
    fields.show("sampling.recorded", recorded, &b.recorded);
}

fn prompt(fields: &mut Fields, a: &[u8], b: &[u8]) {
    let Some(at) = first(a, b) else { return };
    let shown = |bytes: &[u8]| match bytes.get(at..) {
        None | Some([]) => END.to_owned(),
        Some(rest @ [byte, ..]) => {
            let excerpt = rest[..rest.len().min(EXCERPT_BYTES)].escape_ascii();
            format!("{byte:02x}, \"{excerpt}\"{}", more(rest.len() > EXCERPT_BYTES))
        }
    };
    let place = format!("byte {at} of {} and {}", a.len(), b.len());
    fields.at("prompt", &place, shown(a), shown(b));
}

fn tokens(fields: &mut Fields, field: &str, a: &[u32], b: &[u32]) {
    let Some(at) = first(a, b) else { return };
    let shown = |ids: &[u32]| match ids.get(at..) {
        None | Some([]) => END.to_owned(),
        Some(rest) => {
            let ids: Vec<String> = rest.iter().take(EXCERPT_IDS).map(u32::to_string).collect();
            format!("{}{}", ids.join(", "), more(rest.len() > EXCERPT_IDS))
        }
    };
    let place = format!("token {at} of {} and {}", a.len(), b.len());
    fields.at(field, &place, shown(a), shown(b));
}

fn dispatch(fields: &mut Fields, a: &[DispatchRow], b: &[DispatchRow]) {
    let shapes = |rows: &[DispatchRow]| -> BTreeSet<DispatchRow> {
        rows.iter().map(DispatchRow::shape).collect()
    };
    let (own, other) = (shapes(a), shapes(b));
    if own == other {
        // The same products; what the library was asked for may differ.
        let algorithm = |row: &DispatchRow| match &row.algorithm {
            Some(algorithm) => format!("{}: {algorithm:?}", product(row)),
            None => format!("{}: none", product(row)),
        };
        fields.list("dispatch.algorithm", "row", (a, b), algorithm);
        return;
    }
    let only = |these: &BTreeSet<DispatchRow>, those: &BTreeSet<DispatchRow>| {
        let only: Vec<String> = these.difference(those).map(product).collect();
        (only.len(), or_none(only.into_iter().next()))
    };
    let ((count_a, first_a), (count_b, first_b)) = (only(&own, &other), only(&other, &own));
    let place = format!("{count_a} rows in A only, {count_b} in B only, first");
    fields.at("dispatch", &place, first_a, first_b);
}

fn product(row: &DispatchRow) -> String {
    format!("{} m={} n={} k={} {}", row.op, row.m, row.n, row.k, row.recipe)
}

/// The fields of the first pass that differs, and how many there are.
fn passes(fields: &mut Fields, a: &[Pass], b: &[Pass]) {
    fields.show("passes.count", &a.len(), &b.len());
    let Some((index, (a, b))) = a.iter().zip(b).enumerate().find(|(_, (a, b))| a != b) else {
        return;
    };
    let Pass { start_position, token_count, plan_digest, logits_rows, batch: _ } = a;
    let place = format!("pass {index}");
    let mut show = |field: &str, a: &dyn ToString, b: &dyn ToString| {
        fields.at(&format!("passes.{field}"), &place, a.to_string(), b.to_string());
    };
    show("start_position", start_position, &b.start_position);
    show("token_count", token_count, &b.token_count);
    show("plan_digest", plan_digest, &b.plan_digest);
    show("logits_rows", logits_rows, &b.logits_rows);
    let batch = |pass: &Pass| {
        let batch = pass.batch.map(|batch| format!("{} passes, {} rows", batch.passes, batch.rows));
        batch.unwrap_or_else(|| "alone".to_owned())
    };
    show("batch", &batch(a), &batch(b));
}

fn commitments(fields: &mut Fields, (a, a_trace): (&Logits, &Trace), b: (&Logits, &Trace)) {
    let (b, b_trace) = b;
    let Logits { mode, count, vocab, dtype, root } = a;
    fields.show("logits.mode", &mode.word(), &b.mode.word());
    fields.show("logits.count", count, &b.count);
    fields.show("logits.vocab", vocab, &b.vocab);
    fields.show("logits.dtype", &dtype.name(), &b.dtype.name());
    fields.show("logits.root", root, &b.root);
    let Trace { mode, count, root } = a_trace;
    fields.show("trace.mode", &mode.word(), &b_trace.mode.word());
    fields.show("trace.count", count, &b_trace.count);
    let of = |root: Option<Digest>| or_none(root.map(|root| root.to_string()));
    fields.show("trace.root", &of(*root), &of(b_trace.root));
}

/// The differences so far.
struct Fields(Vec<FieldDifference>);

impl Fields {
    /// Compares a field by its text.
    fn show<T: ToString + ?Sized>(&mut self, field: &str, a: &T, b: &T) {
        self.put(field, None, a.to_string(), b.to_string());
    }

    /// Compares a part of a field by its text.
    fn at(&mut self, field: &str, at: &str, a: String, b: String) {
        self.put(field, Some(at), a, b);
    }

    /// Compares lists; the first part that differs is shown.
    fn list<T: PartialEq>(
        &mut self,
        field: &str,
        what: &str,
        (a, b): (&[T], &[T]),
        show: impl Fn(&T) -> String,
    ) {
        let Some(at) = first(a, b) else { return };
        let place = format!("{what} {at} of {} and {}", a.len(), b.len());
        let of = |list: &[T]| list.get(at).map_or_else(|| END.to_owned(), &show);
        self.put(field, Some(&place), of(a), of(b));
    }

    fn put(&mut self, field: &str, at: Option<&str>, a: String, b: String) {
        if a != b {
            let (field, at) = (field.to_owned(), at.map(str::to_owned));
            let counts = !NOT_COUNTED.contains(&field.as_str());
            self.0.push(FieldDifference { field, at, a, b, counts });
        }
    }
}

/// Index of the first element that differs, or at which one list ends.
fn first<T: PartialEq>(a: &[T], b: &[T]) -> Option<usize> {
    let differs = a.iter().zip(b).position(|(a, b)| a != b);
    differs.or_else(|| (a.len() != b.len()).then(|| a.len().min(b.len())))
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| "none".to_owned())
}

fn more(is_more: bool) -> &'static str {
    if is_more { " …" } else { "" }
}

/// What stands for the part of a list that is over.
const END: &str = "the end";

/// Bytes of a prompt that are shown from the first differing one on.
const EXCERPT_BYTES: usize = 24;

/// Token ids that are shown from the first differing one on.
const EXCERPT_IDS: usize = 8;
