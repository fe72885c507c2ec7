//! The signed statement: what was run, on what, and what came out.
//!
//! One CBOR map with unsigned integer keys; `schemas/transcript.cddl` is the
//! same list for other readers. Every value in it is a claim of the signer until
//! `verify` has recomputed it.

mod check;
mod environment;
mod manifest;
mod run;

pub use environment::{Engine, Environment, GpuEnvironment, KernelSource};
pub use manifest::{ManifestFile, ModelManifest};
pub use run::{
    Algorithm, Artifact, Batch, DispatchRow, FinishReason, Logits, LogitsMode, Pass, Sampling,
    Section, Trace, TraceMode,
};

use ciborium::Value;

use crate::num::{Digest, sha256};

use super::TranscriptError;
use super::strict;
use super::wire::{Entries, Member, encode, entries, map, record, refuse_rest, wrong};

/// Version of the file format. A reader refuses any other number.
pub const FORMAT_VERSION: u64 = 1;

/// First key of the optional part of the statement.
///
/// A key below it is critical: a reader that does not know it refuses the
/// statement. A key from here on may be ignored, because it changes no verdict.
pub const FIRST_OPTIONAL_KEY: u64 = 64;

/// Longest statement that is read (bytes). A prompt of a million tokens needs
/// about 10 MiB; decoding takes up to 32 times the length in memory.
pub const MAX_STATEMENT_LEN_BYTES: usize = 16 << 20;

record! {
    /// The program that wrote the transcript.
    Tool {
        /// Name.
        1 => name: String,
        /// Version.
        2 => version: String,
    }
}

/// A field of the statement that this version does not know and may ignore.
#[derive(Clone, Debug, PartialEq)]
pub struct Extension {
    /// Its key, at least [`FIRST_OPTIONAL_KEY`].
    pub key: u64,
    /// Its value: unsigned integers, text, bytes, arrays, maps.
    pub value: Value,
}

/// Declares [`Statement`] with the keys of its map.
macro_rules! statement {
    ($($(#[$meta:meta])* $key:literal => $field:ident: $kind:ty,)+) => {
        /// What one transcript states.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Statement {
            $($(#[$meta])* pub $field: $kind,)+
            /// Fields with keys from [`FIRST_OPTIONAL_KEY`] on, kept as found.
            pub extensions: Vec<Extension>,
        }

        impl Statement {
            fn known_entries(&self) -> Entries {
                let mut entries = Entries::new();
                $(self.$field.put($key, &mut entries);)+
                entries
            }

            fn from_entries(mut entries: Entries) -> Result<Self, TranscriptError> {
                // The version first: another one explains every later surprise.
                let version = u64::take(&mut entries, 1, "format_version".to_owned())?;
                if version != FORMAT_VERSION {
                    return Err(wrong("format_version", "1"));
                }
                entries.insert(1, Value::from(version));
                $(let $field = <$kind as Member>::take(
                    &mut entries, $key, stringify!($field).to_owned(),
                )?;)+
                let optional = entries.split_off(&FIRST_OPTIONAL_KEY);
                refuse_rest(&entries, "the statement")?;
                let extensions =
                    optional.into_iter().map(|(key, value)| Extension { key, value }).collect();
                Ok(Self { $($field,)+ extensions })
            }
        }
    };
}

statement! {
    /// Version of the format, [`FORMAT_VERSION`].
    1 => format_version: u64,
    /// The program that wrote the transcript.
    2 => tool: Tool,
    /// Version of the numerics (plan version): changes whenever a bit could.
    3 => numerics: u64,
    /// The model's files.
    4 => model: ModelManifest,
    /// The GPU profile whose arithmetic is claimed.
    5 => profile: Artifact,
    /// The catalogue that names the recipe of each dispatch row.
    6 => catalogue: Artifact,
    /// Where it ran.
    7 => environment: Environment,
    /// The software stack whose recipes apply, for instance `native`.
    8 => stack: String,
    /// How tokens were chosen.
    9 => sampling: Sampling,
    /// The prompt as it was given, before tokenization.
    10 => prompt: Vec<u8>,
    /// Token ids fed to the model before the first generated one.
    11 => tokens_in: Vec<u32>,
    /// Generated token ids, a stop token included.
    12 => tokens_out: Vec<u32>,
    /// Why generation ended.
    13 => finish: FinishReason,
    /// Distinct dispatches really used, in ascending order.
    14 => dispatch: Vec<DispatchRow>,
    /// Forward passes, in order.
    15 => passes: Vec<Pass>,
    /// Commitment to the logits.
    16 => logits: Logits,
    /// Commitment to the outputs of steps.
    17 => trace: Trace,
    /// The sections that follow in the file, in order.
    18 => sections: Vec<Section>,
    /// Time that the signer claims (seconds since 1970-01-01T00:00:00Z).
    19 => claimed_time: u64,
    /// A challenger's nonce.
    20 => nonce: Option<Vec<u8>>,
}

impl Statement {
    /// Returns the deterministic CBOR of the statement: the bytes that are signed.
    ///
    /// # Errors
    /// Any [`TranscriptError`] that reading these bytes back would give, so that
    /// nothing is signed that cannot be read.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TranscriptError> {
        let mut entries = self.known_entries();
        for extension in &self.extensions {
            if extension.key < FIRST_OPTIONAL_KEY {
                let field = "the statement".to_owned();
                return Err(TranscriptError::UnknownKey { field, key: extension.key });
            }
            entries.insert(extension.key, extension.value.clone());
        }
        let bytes = encode(&map(entries));
        Self::from_bytes(&bytes, 0)?;
        Ok(bytes)
    }

    /// Reads a statement; `base` is its offset in the file, for messages.
    ///
    /// # Errors
    /// [`TranscriptError`] of class `Malformed` for bytes that are not the one
    /// encoding of a consistent statement.
    pub fn from_bytes(bytes: &[u8], base: usize) -> Result<Self, TranscriptError> {
        if bytes.len() > MAX_STATEMENT_LEN_BYTES {
            let (found, limit) = (bytes.len(), MAX_STATEMENT_LEN_BYTES);
            return Err(TranscriptError::TooLong { found, limit });
        }
        strict::check_item(bytes, base)?;
        let value: Value = ciborium::from_reader(bytes).map_err(|_| TranscriptError::Envelope {
            offset: base,
            reason: "undecodable statement",
        })?;
        let statement = Self::from_entries(entries(value, "the statement")?)?;
        // One rule for whatever the scan above might have let through: what was
        // read must be spelled exactly as it would be written.
        let mut again = statement.known_entries();
        again.extend(statement.extensions.iter().map(|e| (e.key, e.value.clone())));
        if encode(&map(again)) != bytes {
            return Err(TranscriptError::Envelope {
                offset: base,
                reason: "the statement is not in its canonical form",
            });
        }
        statement.check()?;
        Ok(statement)
    }

    /// Returns the digest that identifies a transcript: of the statement, not of
    /// the file, because one statement can carry many valid signatures.
    ///
    /// # Errors
    /// As [`Self::to_bytes`].
    pub fn digest(&self) -> Result<Digest, TranscriptError> {
        Ok(sha256(&[&self.to_bytes()?]))
    }
}

#[cfg(test)]
mod tests;
