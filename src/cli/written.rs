//! What `attest run` says of the transcripts that it wrote.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::output::{plain, plain_lines};
use crate::model::Model;
use crate::transcript::Transcript;

/// A transcript that was written.
pub(super) struct Written<'a> {
    /// Its file.
    pub(super) path: PathBuf,
    /// The file of the key that signed it.
    pub(super) key_path: &'a Path,
    /// What is in it.
    pub(super) transcript: Transcript,
}

/// The result as JSON and as text: of one transcript its object, of several a list
/// of such objects, each with its prompt.
pub(super) fn describe(
    prompts: &[PathBuf],
    written: &[Written<'_>],
    model: &Model,
) -> (Value, String) {
    if let [one] = written {
        return one.describe(model);
    }
    let (mut list, mut texts) = (Vec::new(), Vec::new());
    for (prompt, one) in prompts.iter().zip(written) {
        let (mut json, text) = one.describe(model);
        json["prompt_file"] = json!(prompt);
        list.push(json);
        texts.push(format!("prompt {}:\n{text}", plain(&prompt.display().to_string())));
    }
    (json!({ "transcripts": list }), texts.join("\n\n"))
}

impl Written<'_> {
    fn describe(&self, model: &Model) -> (Value, String) {
        let (transcript, statement) = (&self.transcript, self.transcript.statement());
        let (tokens_in, tokens_out) = (statement.tokens_in.len(), statement.tokens_out.len());
        // The vocabulary may have more rows than the tokenizer has tokens; the
        // transcript is none the worse for it.
        let text = match model.tokenizer().decode(&statement.tokens_out) {
            Ok(text) => text,
            Err(error) => format!("[no text: {error}]"),
        };
        let (files, from_cache) = (model.manifest().files().len(), model.manifest().from_cache());
        let json = json!({
            "transcript_file": self.path,
            "transcript": transcript.digest().to_string(),
            "bytes": transcript.as_bytes().len(),
            "key_id": transcript.key_id().to_string(),
            "key_file": self.key_path,
            "model": statement.model.name,
            "engine": statement.environment.engine.word(),
            "tokens_in": tokens_in,
            "tokens_out": tokens_out,
            "finish": statement.finish.word(),
            "digests": { "files": files, "from_cache": from_cache },
            "text": text,
        });
        let shown = plain_lines(&text);
        let remembered = match from_cache {
            0 => String::new(),
            some => format!(" ({some} of {files} file digests from the cache, not recomputed)"),
        };
        let summary = format!(
            "{shown}\n\nmodel {}{remembered}, {tokens_in} tokens in, {tokens_out} out ({}), engine {}\ntranscript {}\nwritten to {} ({} bytes), signed by key {}",
            plain(&statement.model.name),
            statement.finish.word(),
            statement.environment.engine.word(),
            transcript.digest(),
            self.path.display(),
            transcript.as_bytes().len(),
            transcript.key_id(),
        );
        (json, summary)
    }
}
