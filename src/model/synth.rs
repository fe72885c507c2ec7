//! A stand-in checkpoint: the files of a published model, made from a seed.
//!
//! Where a model's weights are not at hand, a checkpoint of the same names,
//! shapes and types serves to measure and to compare engines: every element is a
//! hash of (seed, tensor name, index), shaped like a trained weight, and the same
//! on every machine. `spec/synthetic-model.md` defines it. Whoever reads such a
//! folder reads it as any other; nothing else in the library knows of synthesis.
//! Files are made here as bytes for a writer; opening files is the command line's.

mod layout;
mod published;
mod values;

use std::io::{self, Write};

use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

use super::weights::{EMBEDDING, OUTPUT, architecture};
use super::{Config, ModelError};
use crate::num::{Digest, sha256};
use layout::Entry;
use published::SHAPES;
use values::Rule;

/// A checkpoint that can be written.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    seed: u64,
    name: String,
    config: Config,
    texts: Vec<(&'static str, String)>,
    shards: Vec<Vec<Entry>>,
}

/// One file of a checkpoint.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    checkpoint: &'a Checkpoint,
    name: String,
    content: Content<'a>,
}

#[derive(Clone, Debug)]
enum Content<'a> {
    Text(&'a str),
    Shard(&'a [Entry]),
}

/// One file that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// Its name.
    pub name: String,
    /// Its length (bytes).
    pub len_bytes: u64,
    /// SHA-256 of its content.
    pub sha256: Digest,
}

/// The names of the shapes that can be made.
pub fn shapes() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().map(|shape| shape.name)
}

/// One digest for all files: SHA-256 of a line `SHA256  NAME` for each, sorted by
/// name, as the program `sha256sum` prints them.
pub fn digest(files: &[Written]) -> Digest {
    let mut lines: Vec<_> = files.iter().map(|file| (&file.name, file.sha256)).collect();
    lines.sort();
    let text: String = lines.iter().map(|(name, sha256)| format!("{sha256}  {name}\n")).collect();
    sha256(&[text.as_bytes()])
}

impl Checkpoint {
    /// Lays out the checkpoint of a shape; `None` if no shape has this name.
    /// `layers` replaces the shape's number of layers; those that remain keep
    /// their bytes.
    ///
    /// # Errors
    /// [`ModelError`] if no model can have so many layers.
    pub fn new(shape: &str, layers: Option<usize>, seed: u64) -> Result<Option<Self>, ModelError> {
        let Some(shape) = SHAPES.iter().find(|known| known.name == shape) else { return Ok(None) };
        let name = match layers {
            None => format!("{}-synth-{seed}", shape.name),
            Some(layers) => format!("{}-layers-{layers}-synth-{seed}", shape.name),
        };
        let config_text = pretty(&shape.config(layers.unwrap_or(shape.layers), &name));
        // As the loader reads it: what is written can be opened.
        let config = Config::from_json(config_text.as_bytes())?;
        let tensors = architecture(&config)
            .filter(|(name, _)| shape.head || name != OUTPUT)
            .map(|(name, shape)| Entry { name, shape })
            .collect();
        let shards = layout::split(tensors, shape.shard_bytes);
        let mut texts = vec![("config.json", config_text)];
        texts.push(("generation_config.json", pretty(&shape.generation())));
        if shards.len() > 1 {
            texts.push(("model.safetensors.index.json", pretty(&layout::index(&shards))));
        }
        Ok(Some(Self { seed, name, config, texts, shards }))
    }

    /// What it is, in a word: the shape, `synth`, and the seed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The architecture.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The files, small ones first. A tokenizer is not among them.
    pub fn parts(&self) -> Vec<Part<'_>> {
        let part = |name, content| Part { checkpoint: self, name, content };
        let texts = self.texts.iter().map(|(name, text)| ((*name).into(), Content::Text(text)));
        let count = self.shards.len();
        let shards = self.shards.iter().enumerate();
        let shards = shards.map(|(i, shard)| (layout::shard_name(i, count), Content::Shard(shard)));
        texts.chain(shards).map(|(name, content)| part(name, content)).collect()
    }

    /// The rule of a tensor. A head that is tied is a copy of the embedding.
    fn rule(&self, tensor: &Entry) -> Rule {
        let copy = tensor.name == OUTPUT && self.config.tie_word_embeddings;
        let name = if copy { EMBEDDING } else { &tensor.name };
        Rule::of(self.seed, name, &tensor.shape, self.config.hidden_size)
    }
}

impl Part<'_> {
    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file's length (bytes).
    pub fn len_bytes(&self) -> u64 {
        match self.content {
            Content::Text(text) => text.len() as u64,
            Content::Shard(shard) => {
                let tensors: u64 = shard.iter().map(Entry::len_bytes).sum();
                layout::header(shard).len() as u64 + tensors
            }
        }
    }

    /// Writes the file, telling `progress` the bytes of each block. Any number of
    /// threads makes the same bytes; two blocks are in memory at a time.
    ///
    /// # Errors
    /// The writer's.
    pub fn write<W: Write + Send>(
        &self,
        to: &mut W,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> io::Result<Written> {
        let mut sink = Sink { to, hasher: Sha256::new(), len_bytes: 0, progress };
        match self.content {
            Content::Text(text) => sink.put(text.as_bytes())?,
            Content::Shard(shard) => self.write_shard(shard, &mut sink)?,
        }
        let sha256 = Digest(sink.hasher.finalize().into());
        Ok(Written { name: self.name.clone(), len_bytes: sink.len_bytes, sha256 })
    }

    /// Makes the next block while the last one is written and hashed.
    fn write_shard<W: Write + Send>(
        &self,
        shard: &[Entry],
        sink: &mut Sink<'_, W>,
    ) -> io::Result<()> {
        let mut full = layout::header(shard);
        let mut next = Vec::new();
        for tensor in shard {
            let rule = self.checkpoint.rule(tensor);
            let len_bytes = tensor.len_bytes() as usize;
            for start in (0..len_bytes).step_by(BLOCK_BYTES) {
                next.resize((len_bytes - start).min(BLOCK_BYTES), 0);
                let make = || {
                    next.par_chunks_mut(PART_BYTES).enumerate().for_each(|(part, out)| {
                        rule.fill((start + part * PART_BYTES) / 2, out);
                    });
                };
                let (written, ()) = rayon::join(|| sink.put(&full), make);
                written?;
                std::mem::swap(&mut full, &mut next);
            }
        }
        sink.put(&full)
    }
}

/// Where a file goes: to the writer, the digest and the progress.
struct Sink<'a, W> {
    to: &'a mut W,
    hasher: Sha256,
    len_bytes: u64,
    progress: &'a mut (dyn FnMut(u64) + Send),
}

impl<W: Write> Sink<'_, W> {
    fn put(&mut self, block: &[u8]) -> io::Result<()> {
        self.to.write_all(block)?;
        self.hasher.update(block);
        self.len_bytes += block.len() as u64;
        (self.progress)(block.len() as u64);
        Ok(())
    }
}

/// JSON as the published files have it: two spaces, a newline at the end.
fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

/// Bytes made and written at a time.
const BLOCK_BYTES: usize = 32 << 20;

/// Bytes that one thread makes at a time.
const PART_BYTES: usize = 256 << 10;
