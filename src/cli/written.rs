//! What `attest run` says of the transcripts that it wrote.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::error::{Exit, Failure};
use super::output::{plain, plain_lines};
use super::paths::{self, Pending};
use crate::model::Model;
use crate::transcript::record::Recording;
use crate::transcript::statement::TraceMode;
use crate::transcript::{Transcript, write};

/// Where a transcript goes.
pub(super) struct Places {
    /// The transcript.
    pub(super) out: Pending,
    /// Everything that it commits to, if that is not in the transcript itself.
    pub(super) kept: Option<Pending>,
}

impl Places {
    /// Writes both.
    pub(super) fn fill<'a>(
        self,
        item_0: &[u8],
        recording: &mut Recording,
        key_path: &'a Path,
    ) -> Result<Written<'a>, Failure> {
        let path = self.out.path().to_owned();
        let alone = write::statement_alone(item_0, recording.sections.len());
        let transcript = Transcript::parse(alone)?;
        let mut everything = |place: Pending| {
            let path = place.path().to_owned();
            place.stage(|out| {
                write::whole(item_0, recording, out).map_err(|error| paths::failed(&path, &error))
            })
        };
        let (bytes, kept) = match self.kept {
            None => {
                let whole = everything(self.out)?;
                let bytes = whole.len_bytes;
                whole.take()?;
                (bytes, None)
            }
            Some(place) => {
                let path = place.path().to_owned();
                // Both are written before either is moved to its place, so that a full disk
                // leaves neither without the other.
                let kept = everything(place)?;
                let out = self.out;
                let alone = out.stage(|file| {
                    let written = file.write_all(transcript.as_bytes());
                    written.map_err(|error| Failure::new(Exit::Usage, error.to_string()))
                })?;
                let length = kept.len_bytes;
                kept.take()?;
                alone.take()?;
                (transcript.len_bytes(), Some((path, length)))
            }
        };
        Ok(Written { path, bytes, kept, key_path, transcript })
    }
}

/// A transcript that was written.
pub(super) struct Written<'a> {
    /// Its file.
    pub(super) path: PathBuf,
    /// Length of the file.
    bytes: u64,
    /// File and length of what it commits to, if that is another file.
    kept: Option<(PathBuf, u64)>,
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
    /// The files.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        let kept = self.kept.iter().map(|(path, _)| path.as_path());
        [self.path.as_path()].into_iter().chain(kept)
    }

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
            "bytes": self.bytes,
            "kept_file": self.kept.as_ref().map(|(path, _)| path),
            "kept_bytes": self.kept.as_ref().map(|(_, bytes)| bytes),
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
            self.bytes,
            transcript.key_id(),
        );
        let kept = self.kept.as_ref().map_or_else(String::new, |(path, bytes)| {
            format!(
                "\nwhat it commits to kept in {} ({bytes} bytes): it has every logit; keep it, to show \
                 where a difference is{}",
                path.display(),
                match statement.trace.mode {
                    TraceMode::Cells => " and to open cells to a challenge",
                    TraceMode::None | TraceMode::Layers | TraceMode::Steps => {
                        "; single cells cannot be opened to a challenge (--trace cells)"
                    }
                }
            )
        });
        let summary = summary + &kept;
        (json, summary)
    }
}
