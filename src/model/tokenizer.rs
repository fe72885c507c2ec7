//! `tokenizer.json`: text to token ids and back.
//!
//! Token ids in a transcript are authoritative; this maps a prompt to ids once,
//! when it is run, and lets a verifier repeat that as a check of its own. Text
//! is taken raw: no chat template, no special tokens added. Special tokens
//! spelled out in the text become their ids, as in transformers.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{ModelError, json};

/// A tokenizer as its file defines it, normalisation included.
pub struct Tokenizer(tokenizers::Tokenizer);

impl Tokenizer {
    /// Reads the text of a `tokenizer.json` for a model of `vocab_size` rows.
    ///
    /// Truncation and padding stored in the file are switched off, as
    /// transformers does on every call: they are not part of the text's ids.
    ///
    /// # Errors
    /// [`ModelError::Tokenizer`] if it is not a tokenizer, repeats a key, or gives
    /// an id that has no row in the embedding.
    pub fn from_json(bytes: &[u8], vocab_size: usize) -> Result<Self, ModelError> {
        json::refuse_repeated_keys(bytes).map_err(refused)?;
        let mut inner = guarded(|| tokenizers::Tokenizer::from_bytes(bytes))?;
        inner.with_truncation(None).map_err(refused)?;
        inner.with_padding(None);
        let largest = inner.get_vocab(true).into_iter().map(|(token, id)| (id, token)).max();
        let Some((id, token)) = largest else {
            return Err(refused("it has no tokens"));
        };
        if id as usize >= vocab_size {
            return Err(refused(format!(
                "token {token:?} has id {id}, vocab_size is {vocab_size}"
            )));
        }
        Ok(Self(inner))
    }

    /// Gives the token ids of a text.
    ///
    /// # Errors
    /// [`ModelError::NotUtf8`] if the bytes are not text;
    /// [`ModelError::Tokenizer`] if the library refuses the text.
    pub fn encode(&self, text: &[u8]) -> Result<Vec<u32>, ModelError> {
        let text = str::from_utf8(text)
            .map_err(|e| ModelError::NotUtf8 { offset: e.valid_up_to(), length: text.len() })?;
        let encoding = guarded(|| self.0.encode_fast(text, false))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Gives the text of token ids, special tokens spelled out. Bytes that are
    /// not UTF-8, such as a character cut in two, become U+FFFD.
    ///
    /// # Errors
    /// [`ModelError::UnknownToken`] for an id without an entry: the embedding
    /// may have more rows than the tokenizer has tokens.
    pub fn decode(&self, ids: &[u32]) -> Result<String, ModelError> {
        if let Some(&id) = ids.iter().find(|&&id| self.0.id_to_token(id).is_none()) {
            return Err(ModelError::UnknownToken { id });
        }
        guarded(|| self.0.decode(ids, false))
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokenizer({} tokens)", self.0.get_vocab_size(true))
    }
}

/// Calls the library, which panics on some files that are JSON and no tokenizers.
fn guarded<T>(call: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, ModelError> {
    // After a panic the tokenizer is not used again: the error ends the command.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(done) => done.map_err(refused),
        Err(panic) => Err(refused(format!("the library cannot use it: {}", said(panic.as_ref())))),
    }
}

/// The text of a panic; `panic!` makes a `String` or a `&str` of it.
fn said(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

fn refused(reason: impl ToString) -> ModelError {
    ModelError::Tokenizer { reason: reason.to_string() }
}
