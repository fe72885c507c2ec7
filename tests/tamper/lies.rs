//! The lies: one line each, and what they do to a statement.

use attest::num::{Digest, Dtype};
use attest::transcript::statement::{
    Algorithm, DispatchRow, Engine, FinishReason, GpuEnvironment, KernelSource, LogitsMode,
    ManifestFile, ModelManifest, Pass, TraceMode,
};
use attest::verify::report::{Subject, Verdict};

use crate::support::{Made, algorithm, model};

/// A field, what is done to it, the check that must fail, the verdict, and words
/// that the message must have.
pub(crate) type Lie = (&'static str, fn(&mut Made), Subject, Verdict, &'static [&'static str]);

use Subject::{Encoding, Environment, Execution, Prompt, Sampling};
use Verdict::{Incomplete, Malformed, Mismatch};

/// Lies of the emulator's statement with full logits and a trace of steps.
pub(crate) const LIES: &[Lie] = &[
    (
        "format_version",
        |m| m.statement.format_version = 2,
        Encoding,
        Malformed,
        &["format_version must be 1"],
    ),
    ("numerics", |m| m.statement.numerics = 2, Environment, Incomplete, &["numerics version 2"]),
    (
        "model.files.path",
        |m| refile(m, |f| f[0].path = "conf.json".into()),
        Subject::Model,
        Incomplete,
        &["conf.json is missing", "config.json is not in the manifest"],
    ),
    (
        "model.files.len_bytes",
        |m| refile(m, |f| f[0].len_bytes += 1),
        Subject::Model,
        Incomplete,
        &["config.json has 830 bytes, expected 831"],
    ),
    (
        "model.files.sha256",
        |m| refile(m, |f| flip(&mut f[2].sha256)),
        Subject::Model,
        Incomplete,
        &["model.safetensors has SHA-256"],
    ),
    (
        "model.files, one more",
        |m| {
            refile(m, |f| {
                f.push(ManifestFile {
                    path: "zz.safetensors".into(),
                    len_bytes: 1,
                    sha256: Digest([0; 32]),
                })
            })
        },
        Subject::Model,
        Incomplete,
        &["zz.safetensors is missing"],
    ),
    (
        "model.files, one less",
        |m| refile(m, |f| drop(f.remove(0))),
        Subject::Model,
        Incomplete,
        &["config.json is not in the manifest"],
    ),
    (
        "model.files, outside",
        |m| refile(m, |f| f[0].path = "../config.json".into()),
        Encoding,
        Malformed,
        &["\"../config.json\" leaves the folder"],
    ),
    (
        "model.digest",
        |m| flip(&mut m.statement.model.digest),
        Encoding,
        Malformed,
        &["manifest digest"],
    ),
    (
        "profile.id, not known",
        |m| m.statement.profile.id = "h900".into(),
        Environment,
        Incomplete,
        &["h900"],
    ),
    (
        "profile.id, another",
        |m| m.statement.profile.id = "h100".into(),
        Environment,
        Incomplete,
        &["profile h100 has digest"],
    ),
    (
        "profile.digest",
        |m| flip(&mut m.statement.profile.digest),
        Environment,
        Incomplete,
        &["profile h200 has digest"],
    ),
    (
        "catalogue.id",
        |m| m.statement.catalogue.id = "mine".into(),
        Environment,
        Incomplete,
        &["no dispatch catalogue mine"],
    ),
    (
        "catalogue.digest",
        |m| flip(&mut m.statement.catalogue.digest),
        Environment,
        Incomplete,
        &["catalogue h200-cublaslt-13.1 has digest"],
    ),
    (
        "environment.engine",
        |m| m.statement.environment.engine = Engine::Cuda,
        Encoding,
        Malformed,
        &["the engine is cuda", "does not name a GPU"],
    ),
    (
        "stack",
        |m| m.statement.stack = "vllm".into(),
        Environment,
        Incomplete,
        &["stack \"vllm\" is not known"],
    ),
    (
        "sampling.rule",
        |m| m.statement.sampling.rule = "top_p".into(),
        Sampling,
        Mismatch,
        &["sampling rule \"top_p\" is not known"],
    ),
    (
        "sampling.max_new_tokens, smaller",
        |m| m.statement.sampling.max_new_tokens = 2,
        Sampling,
        Mismatch,
        &["after 2 tokens", "\"length\"", "\"goes on\""],
    ),
    (
        "sampling.max_new_tokens, larger",
        |m| m.statement.sampling.max_new_tokens = 4,
        Sampling,
        Mismatch,
        &["after 3 tokens", "\"goes on\"", "\"length\""],
    ),
    (
        "sampling.max_new_tokens, 0",
        |m| m.statement.sampling.max_new_tokens = 0,
        Sampling,
        Mismatch,
        &["at most 0 new tokens"],
    ),
    (
        "sampling.max_new_tokens, beyond all",
        |m| m.statement.sampling.max_new_tokens = u64::MAX,
        Sampling,
        Mismatch,
        &["18446744073709551615", "context of 1024"],
    ),
    (
        "sampling.stop_ids, one more",
        |m| m.statement.sampling.stop_ids = vec![0, 9],
        Sampling,
        Mismatch,
        &["stop ids are [0, 9] in the transcript, [0] in the model"],
    ),
    (
        "sampling.stop_ids, none",
        |m| m.statement.sampling.stop_ids.clear(),
        Sampling,
        Mismatch,
        &["stop ids are []"],
    ),
    (
        "sampling.recorded",
        |m| m.statement.sampling.recorded = "{}".into(),
        Sampling,
        Mismatch,
        &["generation config"],
    ),
    ("prompt, a byte", |m| m.statement.prompt[0] ^= 1, Prompt, Mismatch, &["the prompt gives"]),
    (
        "prompt, one more byte",
        |m| m.statement.prompt.push(b'!'),
        Prompt,
        Mismatch,
        &["the prompt gives"],
    ),
    (
        "prompt, none",
        |m| m.statement.prompt.clear(),
        Prompt,
        Mismatch,
        &["the prompt gives 0 tokens"],
    ),
    (
        "prompt, no text",
        |m| m.statement.prompt[0] = 0xff,
        Prompt,
        Mismatch,
        &["not valid UTF-8 at byte 0"],
    ),
    ("tokens_in, an id", |m| m.statement.tokens_in[0] ^= 1, Prompt, Mismatch, &["token 0 is"]),
    (
        "tokens_in, one more",
        |m| m.statement.tokens_in.push(5),
        Prompt,
        Mismatch,
        &["no token and 5"],
    ),
    (
        "tokens_in, none",
        |m| m.statement.tokens_in.clear(),
        Environment,
        Mismatch,
        &["the prompt has no token"],
    ),
    (
        "tokens_in, no such id",
        |m| m.statement.tokens_in[0] = u32::MAX,
        Environment,
        Mismatch,
        &["token 0 of the sequence is 4294967295", "1536 entries"],
    ),
    (
        "tokens_out, first",
        |m| m.statement.tokens_out[0] ^= 1,
        Sampling,
        Mismatch,
        &["token 0 is", "the largest recorded logit"],
    ),
    (
        "tokens_out, second",
        |m| m.statement.tokens_out[1] ^= 1,
        Sampling,
        Mismatch,
        &["token 1 is", "the largest recorded logit"],
    ),
    (
        "tokens_out, last",
        |m| m.statement.tokens_out[2] ^= 1,
        Sampling,
        Mismatch,
        &["token 2 is", "the largest recorded logit"],
    ),
    (
        "tokens_out, no such id",
        |m| m.statement.tokens_out[2] = 1536,
        Environment,
        Mismatch,
        &["is 1536", "1536 entries"],
    ),
    (
        "tokens_out, one less",
        |m| m.statement.tokens_out.truncate(2),
        Environment,
        Mismatch,
        &["3 passes where 2 tokens were generated"],
    ),
    (
        "tokens_out, one more",
        |m| m.statement.tokens_out.push(5),
        Environment,
        Mismatch,
        &["3 passes where 4 tokens were generated"],
    ),
    (
        "tokens_out, none",
        |m| m.statement.tokens_out.clear(),
        Environment,
        Mismatch,
        &["at least one token must be generated"],
    ),
    (
        "tokens_out, more than the context",
        |m| m.statement.tokens_out = vec![5; 1 << 20],
        Environment,
        Mismatch,
        &["do not fit the model's context of 1024"],
    ),
    (
        "finish",
        |m| m.statement.finish = FinishReason::Stop,
        Sampling,
        Mismatch,
        &["after 3 tokens", "\"length\"", "\"stop\""],
    ),
    (
        "dispatch.op",
        |m| redispatch(m, |row| row.op = "conv".into()),
        Environment,
        Mismatch,
        &["no dispatch row for linear"],
    ),
    (
        "dispatch.m",
        |m| redispatch(m, |row| row.m += 512),
        Environment,
        Mismatch,
        &["no dispatch row for linear m="],
    ),
    (
        "dispatch.n",
        |m| redispatch(m, |row| row.n += 7),
        Environment,
        Mismatch,
        &["no dispatch row for linear"],
    ),
    (
        "dispatch.k",
        |m| redispatch(m, |row| row.k += 7),
        Environment,
        Mismatch,
        &["no dispatch row for linear"],
    ),
    (
        "dispatch.recipe",
        |m| redispatch(m, |row| row.recipe = "split_k".into()),
        Environment,
        Mismatch,
        &["no dispatch row for linear", "single_walk"],
    ),
    (
        "dispatch.algorithm",
        |m| redispatch(m, |row| row.algorithm = Some(algorithm())),
        Environment,
        Mismatch,
        &["the emulator asks no library"],
    ),
    (
        "dispatch, one less",
        |m| drop(m.statement.dispatch.remove(0)),
        Environment,
        Mismatch,
        &["no dispatch row for linear"],
    ),
    (
        "dispatch, one more",
        |m| {
            let more = DispatchRow { m: 1 << 40, ..m.statement.dispatch[0].clone() };
            m.statement.dispatch.push(more);
            m.statement.dispatch.sort();
        },
        Environment,
        Mismatch,
        &["the plans have no product like linear m=1099511627776"],
    ),
    (
        "passes.start_position",
        |m| m.statement.passes[1].start_position += 1,
        Encoding,
        Malformed,
        &["pass 1 starts at position"],
    ),
    (
        "passes.token_count",
        |m| {
            m.statement.passes[2].token_count = 2;
            m.commit();
        },
        Environment,
        Mismatch,
        &["pass 2 takes 2 tokens", "expected 1"],
    ),
    (
        "passes.token_count, beyond all",
        |m| m.statement.passes[2].token_count = u64::MAX,
        Encoding,
        Malformed,
        &["pass 2 ends past 2^64"],
    ),
    (
        "passes.plan_digest",
        |m| flip(&mut m.statement.passes[1].plan_digest),
        Environment,
        Mismatch,
        &["pass 1 has plan digest", "this program builds"],
    ),
    (
        "passes.logits_rows",
        |m| m.statement.passes[1].logits_rows = 0,
        Encoding,
        Malformed,
        &["the passes have 2 logits rows, the commitment 3"],
    ),
    (
        "passes.logits_rows, moved",
        |m| {
            m.statement.passes[0].logits_rows = 2;
            m.statement.passes[1].logits_rows = 0;
            m.commit();
        },
        Environment,
        Mismatch,
        &["pass 0 commits to 2 rows of logits, expected 1"],
    ),
    (
        "passes, one more",
        |m| {
            let last = m.statement.passes[2].clone();
            let start_position = last.start_position + 1;
            m.statement.passes.push(Pass { start_position, logits_rows: 0, ..last });
        },
        Environment,
        Mismatch,
        &["4 passes where 3 tokens were generated"],
    ),
    (
        "logits.mode",
        |m| m.statement.logits.mode = LogitsMode::Hash,
        Encoding,
        Malformed,
        &["section logits of 3 leaves"],
    ),
    (
        "logits.count",
        |m| m.statement.logits.count = 4,
        Encoding,
        Malformed,
        &["3 logits rows, the commitment 4"],
    ),
    (
        "logits.vocab, half as many elements of twice the size",
        |m| {
            m.statement.logits.vocab /= 2;
            m.statement.logits.dtype = Dtype::F32;
            m.commit();
        },
        Environment,
        Mismatch,
        &["rows of logits are 768 f32, the model has 1536 bf16"],
    ),
    (
        "logits.vocab, the first elements only",
        |m| resize_rows(m, 1535),
        Environment,
        Mismatch,
        &["rows of logits are 1535 bf16"],
    ),
    (
        "logits.vocab, one more element",
        |m| resize_rows(m, 1537),
        Environment,
        Mismatch,
        &["rows of logits are 1537 bf16"],
    ),
    (
        "logits.root",
        |m| flip(&mut m.statement.logits.root),
        Encoding,
        Malformed,
        &["section logits does not match the statement: root"],
    ),
    (
        "logits, first bit",
        |m| change_logit(m, 0, 0),
        Execution,
        Mismatch,
        &["pass 0, step", "lm_head", "element [0, 0] is", "1 of 1536 elements differ"],
    ),
    (
        "logits, last element",
        |m| change_logit(m, 2, 1535),
        Execution,
        Mismatch,
        &["pass 2, step", "lm_head", "element [0, 1535] is", "1 of 1536 elements differ"],
    ),
    (
        "trace.mode",
        |m| m.statement.trace.mode = TraceMode::Layers,
        Encoding,
        Malformed,
        &["leaves", "due"],
    ),
    ("trace.count", |m| m.statement.trace.count += 1, Encoding, Malformed, &["section trace of"]),
    (
        "trace.root",
        |m| flip(m.statement.trace.root.as_mut().unwrap()),
        Encoding,
        Malformed,
        &["trace section does not match its root"],
    ),
    (
        "trace.root, none",
        |m| m.statement.trace.root = None,
        Encoding,
        Malformed,
        &["trace mode steps and the trace root"],
    ),
    (
        "trace, first output",
        |m| change_trace(m, 0, 0),
        Execution,
        Mismatch,
        &["pass 0, step 0 embed_tokens", "digest is"],
    ),
    (
        "trace, an output of a layer",
        |m| change_trace(m, 1, 4),
        Execution,
        Mismatch,
        &["pass 1, layer 0, step 4 layers.0.self_attn.q_rope", "digest is"],
    ),
    (
        "trace, an output of the last pass",
        |m| change_trace(m, 2, 20),
        Execution,
        Mismatch,
        &["pass 2, layer 1, step 20 layers.1."],
    ),
    (
        "sections.kind",
        |m| m.statement.sections[0].kind = "logit".into(),
        Encoding,
        Malformed,
        &["section \"logit\" where \"logits\" is due"],
    ),
    (
        "sections.len_bytes",
        |m| m.statement.sections[0].len_bytes += 1,
        Encoding,
        Malformed,
        &["section logits of 3 leaves in 9217 bytes"],
    ),
    (
        "sections.leaf_count",
        |m| m.statement.sections[0].leaf_count += 1,
        Encoding,
        Malformed,
        &["section logits of 4 leaves"],
    ),
    (
        "sections.sha256",
        |m| flip(&mut m.statement.sections[1].sha256),
        Encoding,
        Malformed,
        &["section trace does not match the statement: sha256"],
    ),
    (
        "sections, one less",
        |m| m.statement.sections.truncate(1),
        Encoding,
        Malformed,
        &["1 sections where 2 are due"],
    ),
];

/// Lies of a statement that names a GPU.
pub(crate) const GPU_LIES: &[Lie] = &[
    (
        "gpu.kernels.sha256",
        |m| flip(&mut gpu(m).kernels[0].sha256),
        Environment,
        Incomplete,
        &["kernel argmax.cu has digest"],
    ),
    (
        "gpu.kernels.name",
        |m| gpu(m).kernels[0].name = "a.cu".into(),
        Environment,
        Incomplete,
        &["kernel argmax.cu is not listed"],
    ),
    (
        "gpu.kernels, one more",
        |m| gpu(m).kernels.push(KernelSource { name: "z.cu".into(), sha256: Digest([0; 32]) }),
        Environment,
        Incomplete,
        &["kernel z.cu was never measured"],
    ),
    (
        "gpu.kernels, none",
        |m| gpu(m).kernels.clear(),
        Environment,
        Incomplete,
        &["kernel argmax.cu is not listed"],
    ),
    (
        "gpu.nvrtc_options, changed",
        |m| gpu(m).nvrtc_options[2] = "--fmad=true".into(),
        Environment,
        Incomplete,
        &["--fmad=true"],
    ),
    (
        "gpu.nvrtc_options, one more",
        |m| gpu(m).nvrtc_options.push("--use_fast_math".into()),
        Environment,
        Incomplete,
        &["--use_fast_math"],
    ),
    (
        "gpu.name",
        |m| gpu(m).name = "NVIDIA H100 80GB HBM3".into(),
        Environment,
        Incomplete,
        &["the GPU is \"NVIDIA H100 80GB HBM3\"", "measured with NVIDIA H200"],
    ),
    (
        "gpu.nvrtc",
        |m| gpu(m).nvrtc = "13.1".into(),
        Environment,
        Incomplete,
        &["NVRTC is \"13.1\"", "measured with 13.0"],
    ),
    (
        "gpu.cublaslt",
        |m| gpu(m).cublaslt = "130200".into(),
        Environment,
        Incomplete,
        &["cuBLASLt is \"130200\"", "measured with 130100"],
    ),
    (
        "gpu.cublaslt, another spelling",
        |m| gpu(m).cublaslt = "+130100".into(),
        Environment,
        Incomplete,
        &["cuBLASLt is \"+130100\""],
    ),
    (
        "environment.engine",
        |m| m.statement.environment.engine = Engine::Emulator,
        Encoding,
        Malformed,
        &["the engine is emulator", "names a GPU"],
    ),
    (
        "algorithm.id",
        |m| realgorithm(m, |a| a.id = 41),
        Environment,
        Incomplete,
        &["no measured recipe", "algorithm 41 (split "],
    ),
    (
        "algorithm.split_k",
        |m| realgorithm(m, |a| a.split_k = 2),
        Environment,
        Incomplete,
        &["no measured recipe", "split 2"],
    ),
    (
        "algorithm.reduction_scheme",
        |m| realgorithm(m, |a| a.reduction_scheme = 2),
        Environment,
        Incomplete,
        &["no measured recipe", "reduction scheme 2"],
    ),
    (
        "algorithm.workspace_bytes",
        |m| realgorithm(m, |a| a.workspace_bytes = u64::MAX),
        Environment,
        Incomplete,
        &["needs 18446744073709551615 bytes of workspace for linear m="],
    ),
    (
        "algorithm, two of one product",
        |m| {
            let mut row = m.statement.dispatch[0].clone();
            row.algorithm.as_mut().unwrap().tile += 1;
            m.statement.dispatch.push(row);
            m.statement.dispatch.sort();
        },
        Environment,
        Mismatch,
        &["two dispatch rows for linear m="],
    ),
    (
        "algorithm, none",
        |m| redispatch(m, |row| row.algorithm = None),
        Environment,
        Mismatch,
        &["no algorithm for linear"],
    ),
];

pub(crate) fn flip(digest: &mut Digest) {
    digest.0[7] ^= 1;
}

pub(crate) fn refile(made: &mut Made, change: impl FnOnce(&mut Vec<ManifestFile>)) {
    let manifest = &mut made.statement.model;
    change(&mut manifest.files);
    *manifest = ModelManifest::new(&manifest.name, std::mem::take(&mut manifest.files));
}

pub(crate) fn redispatch(made: &mut Made, change: impl FnOnce(&mut DispatchRow)) {
    change(&mut made.statement.dispatch[0]);
    made.statement.dispatch.sort();
}

pub(crate) fn realgorithm(made: &mut Made, change: impl FnOnce(&mut Algorithm)) {
    redispatch(made, |row| change(row.algorithm.as_mut().unwrap()));
}

/// Cuts or extends every row of logits; what is added is the smallest number.
pub(crate) fn resize_rows(made: &mut Made, vocab: usize) {
    let row = 2 * model().config().vocab_size;
    let resized = |row: &[u8]| {
        let mut row = row.to_vec();
        // 0xff7f: the largest finite bf16, negative.
        row.resize(2 * vocab, 0);
        row.chunks_mut(2).skip(1536).for_each(|element| element.copy_from_slice(&[0x7f, 0xff]));
        row
    };
    made.contents[0] = made.contents[0].chunks(row).flat_map(resized).collect();
    made.statement.logits.vocab = vocab as u64;
    made.commit();
}

pub(crate) fn change_logit(made: &mut Made, row: usize, column: usize) {
    made.contents[0][2 * (row * 1536 + column)] ^= 1;
    made.commit();
}

/// Changes one bit of the digest of a step's output.
pub(crate) fn change_trace(made: &mut Made, pass: usize, step: usize) {
    let steps = made.layout().0[0].steps.len();
    made.contents[1][32 * (pass * steps + step)] ^= 1;
    made.commit();
}

pub(crate) fn gpu(made: &mut Made) -> &mut GpuEnvironment {
    made.statement.environment.gpu.as_mut().unwrap()
}
