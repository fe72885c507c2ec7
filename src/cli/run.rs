//! `attest run`: prompt → signed transcript.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args as ClapArgs, ValueEnum};

use super::basis::Basis;
use super::digests::{Remembered, digested};
use super::error::Failure;
use super::output::Output;
use super::passphrase::Source;
use super::paths::{Pending, kept_beside, numbered};
use super::produce::{Work, on_emulator};
use super::verify::{Nonce, parse_hex};
use super::written::{Places, Written, describe};
use super::{CommandResult, Exit, gpu, paths, selfcheck, signer};
use crate::engine::generate::{GenerateError, StopRule, check};
use crate::model::Content;
use crate::model::locate;
use crate::plan::Stack;
use crate::transcript::capture::{self, Circumstances};
use crate::transcript::key::PrivateKey;
use crate::transcript::statement::{LogitsMode, TraceMode};
use crate::transcript::write;

/// Arguments of `attest run`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Model name or folder. A name is looked up in $ATTEST_MODELS and in the
    /// Hugging Face cache, never on the network.
    #[arg(long)]
    model: String,
    /// File with the prompt, taken byte for byte. Given several times, the prompts
    /// run together, each with a transcript of its own.
    #[arg(long = "prompt", value_name = "FILE", required = true)]
    prompts: Vec<PathBuf>,
    /// Where to write the transcript; of several prompts, their number is put before
    /// the extension: transcript-1.cbor. With --json several give
    /// {"transcripts": [...]}, in the order of the prompts.
    #[arg(long, value_name = "FILE", default_value = "transcript.cbor")]
    out: PathBuf,
    /// Where to keep everything that the transcript commits to: its sections and, with
    /// --trace cells, what is opened to a challenge [default: OUT with .kept before the
    /// extension].
    #[arg(long, value_name = "FILE", conflicts_with = "whole")]
    kept: Option<PathBuf>,
    /// Put all of that into the transcript itself, which then shows where a difference
    /// is; by default it has the signed statement alone, which is as binding.
    #[arg(long)]
    whole: bool,
    /// Replace files that exist.
    #[arg(long)]
    overwrite: bool,
    /// Signing key [default: key.pem in the configuration folder].
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    passphrase: Source,
    /// What executes the model.
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    engine: Choice,
    /// Which algorithms matrix products take: `unsplit` is the stack native, where a
    /// row's bits do not depend on the others; `stock` is native-stock.
    #[arg(long, value_enum, default_value_t = Gemm::Unsplit)]
    gemm: Gemm,
    /// Most tokens to generate.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    max_new_tokens: u32,
    /// What is kept of the logits; the transcript itself has their root alone, unless it is
    /// --whole.
    #[arg(long, value_enum, default_value_t = Logits::Full)]
    logits: Logits,
    /// Which outputs are committed to besides.
    #[arg(long, value_enum, default_value_t = Trace::None)]
    trace: Trace,
    /// A challenger's nonce to carry (hex).
    #[arg(long, value_name = "HEX", value_parser = parse_hex)]
    nonce: Option<Nonce>,
    /// Time to claim, seconds since 1970 [default: now].
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH")]
    claimed_time: Option<u64>,
    /// Take digests of weight files that are as an earlier run with this option
    /// found them from the cache, and keep new ones there.
    #[arg(long)]
    trust_cache: bool,
    /// Run everything twice, on a GPU asking the library anew; if the runs differ in an
    /// algorithm or a bit, write nothing and exit with 1. Takes twice as long.
    #[arg(long)]
    selfcheck: bool,
}

/// Which engine executes the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Choice {
    /// The GPU if there is one that can be used, else the emulator.
    Auto,
    /// The GPU.
    Cuda,
    /// The CPU, with the GPU's arithmetic.
    Emulator,
}

/// Which algorithms cuBLASLt is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Gemm {
    /// Without split-K.
    Unsplit,
    /// Its own choice, split-K included.
    Stock,
}

impl Gemm {
    /// The stack that takes them.
    pub(super) fn stack(self) -> Stack {
        match self {
            Self::Unsplit => Stack::Native,
            Self::Stock => Stack::NativeStock,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Logits {
    /// Every row of logits that chose a token.
    Full,
    /// Their SHA-256 only.
    Hash,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Trace {
    /// No outputs.
    None,
    /// The output of every layer.
    Layers,
    /// The output of every step.
    Steps,
    /// Every row that a layer keeps or hands on, so that single ones can be opened to a
    /// challenge.
    Cells,
}

/// Runs the model, signs what came out and writes it.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let prompts: Result<Vec<Vec<u8>>, Failure> =
        args.prompts.iter().map(|path| paths::read(path)).collect();
    let prompts = prompts?;
    let (key, key_path) = signing_key(args.key.as_deref(), &args.passphrase, output)?;
    let folder = locate::Places::from_env().resolve(&args.model)?;
    let remembered = Remembered::open(args.trust_cache, output);
    let content = Content::open(&folder)?.with_cache(remembered.cache());
    for warning in content.warnings() {
        output.note(&format!("warning: {warning}"));
    }
    // Whatever can be refused is, before gigabytes are hashed.
    let basis = Basis::of(args.gemm.stack(), content.config())?;
    let rule = StopRule {
        max_new_tokens: args.max_new_tokens as usize,
        stop_ids: content.generation().eos_token_id.clone(),
    };
    let tokens: Result<Vec<Vec<u32>>, Failure> = args
        .prompts
        .iter()
        .zip(&prompts)
        .map(|(path, prompt)| prompt_tokens(path, prompt, &content, rule.max_new_tokens))
        .collect();
    let tokens = tokens?;
    let outs = outputs(args, &key_path, content.folder())?;
    let gpu = gpu_of(args, &content, &basis, &tokens, output)?;
    let model = digested(content, output)?;
    remembered.save(output);
    let work = Work {
        model: &model,
        basis: &basis,
        prompts: &tokens,
        rule: &rule,
        logits: match args.logits {
            Logits::Full => LogitsMode::Full,
            Logits::Hash => LogitsMode::Hash,
        },
        trace: match args.trace {
            Trace::None => TraceMode::None,
            Trace::Layers => TraceMode::Layers,
            Trace::Steps => TraceMode::Steps,
            Trace::Cells => TraceMode::Cells,
        },
        aside: outs.first().map(|places| paths::folder_of(places.out.path()).to_owned()),
        output,
    };
    let on_gpu = gpu.is_some();
    let produce = |gpu| match gpu {
        Some(ready) => gpu::produce(ready, &work),
        None => on_emulator(&work),
    };
    let made = produce(gpu)?;
    if args.selfcheck {
        let again = || gpu_of(args, model.content(), &basis, &tokens, output);
        let second = produce(if on_gpu { again()? } else { None })?;
        selfcheck::require_same(&made, &second, output)?;
    }
    // What was computed is only the manifest's model if its files did not change.
    model.weights().check_unchanged()?;

    let claimed_time = match args.claimed_time {
        Some(time) => time,
        None => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    };
    let mut written: Vec<Written> = Vec::with_capacity(outs.len());
    for ((mut sequence, (prompt, tokens_in)), places) in
        made.sequences.into_iter().zip(prompts.into_iter().zip(tokens)).zip(outs)
    {
        let circumstances = Circumstances {
            model: &model,
            profile: basis.profile.clone(),
            catalogue: basis.catalogue(),
            environment: made.environment.clone(),
            dispatch: sequence.dispatch,
            stack: basis.stack,
            rule: &rule,
            prompt,
            tokens_in,
            claimed_time,
            nonce: args.nonce.clone().map(|nonce| nonce.0),
        };
        let statement =
            capture::statement(circumstances, &sequence.generation, &sequence.recording);
        let item_0 = write::item_0(&statement, &key)?;
        let one = places.fill(&item_0, &mut sequence.recording, &key_path).inspect_err(|_| {
            for path in written.iter().flat_map(Written::files) {
                output.note(&format!("note: {} was written", path.display()));
            }
        })?;
        written.push(one);
    }
    let (json, text) = describe(&args.prompts, &written, &model);
    output.result(&json, &text);
    Ok(Exit::Success)
}

/// A place for every transcript, found before anything is computed.
fn outputs(args: &Args, key_path: &Path, folder: &Path) -> Result<Vec<Places>, Failure> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let read: Vec<PathBuf> = args
        .prompts
        .iter()
        .map(PathBuf::as_path)
        .chain([key_path])
        .chain(args.passphrase.file())
        .map(real)
        .collect();
    let mut kept: Vec<&Path> = read.iter().map(PathBuf::as_path).collect();
    kept.push(folder);
    let place = |path: &Path| Pending::create(path, args.overwrite, &kept);
    let beside = |out: &Path, number: Option<usize>| match (&args.kept, number) {
        (None, _) => kept_beside(out),
        (Some(kept), None) => kept.clone(),
        (Some(kept), Some(number)) => numbered(kept, number),
    };
    let both = |out: &Path, beside: &Path| {
        let out = place(out)?;
        let kept = if args.whole { None } else { Some(place(beside)?.for_owner_only()) };
        if kept.as_ref().is_some_and(|kept| kept.is_at(&out)) {
            let message = format!("{}: two files need two names", beside.display());
            return Err(Failure::new(Exit::Usage, message).hint("name another with --kept"));
        }
        Ok(Places { out, kept })
    };
    match args.prompts.len() {
        1 => Ok(vec![both(&args.out, &beside(&args.out, None))?]),
        several => {
            let place = |number| {
                let out = numbered(&args.out, number);
                both(&out, &beside(&out, Some(number)))
            };
            (1..=several).map(place).collect()
        }
    }
}

/// The GPU, if it is what executes the model.
fn gpu_of(
    args: &Args,
    content: &Content,
    basis: &Basis,
    tokens: &[Vec<u32>],
    output: &Output,
) -> Result<Option<gpu::Ready>, Failure> {
    let chosen = match args.engine {
        Choice::Emulator => false,
        Choice::Cuda => true,
        Choice::Auto => match gpu::why_not(&basis.catalog) {
            None => true,
            Some(reason) => {
                output.note(&format!("note: {reason}; running on the emulator"));
                false
            }
        },
    };
    let ready = || gpu::ready(content, basis, tokens, args.max_new_tokens as usize);
    chosen.then(ready).transpose()
}

/// The token ids of the prompt, which with `new_tokens` more fit the model's context.
fn prompt_tokens(
    path: &Path,
    prompt: &[u8],
    content: &Content,
    new_tokens: usize,
) -> Result<Vec<u32>, Failure> {
    let refused = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Usage, format!("{}: {error}", path.display()))
    };
    let tokens = content.tokenizer().encode(prompt).map_err(|error| refused(&error))?;
    match check(content.config(), &tokens, new_tokens) {
        Ok(()) => Ok(tokens),
        Err(error @ GenerateError::Context { prompt, limit, .. }) if prompt < limit => {
            let most = limit - prompt;
            Err(refused(&error).hint(format!("at most --max-new-tokens {most} fit")))
        }
        Err(error) => Err(refused(&error)),
    }
}

pub(super) fn signing_key(
    named: Option<&Path>,
    passphrase: &Source,
    output: &Output,
) -> Result<(PrivateKey, PathBuf), Failure> {
    let path = match named {
        Some(path) => path.to_path_buf(),
        None => paths::key().ok_or_else(|| paths::no_folder("--key"))?,
    };
    if named.is_none() && !path.exists() {
        let message = format!("there is no signing key at {}", path.display());
        return Err(Failure::new(Exit::Usage, message)
            .hint("make one with `attest keygen`, or name a key file with --key"));
    }
    let key = signer::read(&path, passphrase, output)?;
    Ok((key, path))
}
