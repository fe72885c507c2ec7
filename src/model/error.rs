//! Why a model could not be read.

use std::path::PathBuf;

use crate::num::Digest;

/// What kind of failure an error is; the command line maps it to an exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file is there and is not valid: nothing else is claimed (exit code 4).
    Malformed,
    /// Something is missing, or not understood: no decision (exit code 5).
    Incomplete,
}

/// Why a model could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The path is not a folder that can be read.
    #[error("model folder {path} cannot be read: {reason}")]
    Folder {
        /// The path as given.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// No folder has the name that was asked for.
    #[error("there is no model named {name}; looked in {}", list(.looked, "no folder, as none is configured"))]
    NotFound {
        /// The name as given.
        name: String,
        /// Every place that was tried, in order.
        looked: Vec<String>,
    },
    /// A name that somebody else chose is not a plain name, so it is not looked up.
    #[error("{name:?} is no plain model name, so no folder is opened for it")]
    NotAName {
        /// The name as found.
        name: String,
    },
    /// More than one folder has the name that was asked for.
    #[error("model name {name} is ambiguous: {}", list(.candidates, ""))]
    Ambiguous {
        /// The name as given.
        name: String,
        /// The folders that match.
        candidates: Vec<String>,
    },
    /// A file of the model is not there.
    #[error("{file} is missing from {folder}")]
    MissingFile {
        /// The file.
        file: String,
        /// The folder that should have it.
        folder: PathBuf,
    },
    /// There is neither `model.safetensors` nor an index of shards.
    #[error("{folder} has neither model.safetensors nor model.safetensors.index.json")]
    MissingWeights {
        /// The folder.
        folder: PathBuf,
    },
    /// The index names a shard that is not there.
    #[error("shard {shard} of {tensors} tensors is missing from {folder}")]
    MissingShard {
        /// The file name in the index.
        shard: String,
        /// How many tensors the index places in it.
        tensors: usize,
        /// The folder that should have it.
        folder: PathBuf,
    },
    /// A symbolic link points to nothing.
    #[error("dangling link {file} -> {target}")]
    DanglingLink {
        /// The link.
        file: String,
        /// What it points to, as stored.
        target: PathBuf,
    },
    /// A symbolic link leaves the folder, or the cache entry it belongs to.
    #[error("link {file} -> {target} leaves {root}")]
    EscapingLink {
        /// The link.
        file: String,
        /// What it points to, as stored.
        target: PathBuf,
        /// The folder it must stay in.
        root: PathBuf,
    },
    /// The entry is a folder, a socket or the like.
    #[error("{file} is not a regular file")]
    NotAFile {
        /// The entry.
        file: String,
    },
    /// A file cannot be opened or read.
    #[error("{file} cannot be read: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// The system's reason.
        reason: String,
    },
    /// Git checked the file out without its content.
    #[error("{file} is a Git LFS pointer, fetch the real file (git lfs pull)")]
    LfsPointer {
        /// The file.
        file: String,
    },
    /// A file changed after it was opened, so its digest no longer speaks for it.
    #[error("{file} changed while it was in use, or its metadata did")]
    Changed {
        /// The file.
        file: String,
    },
    /// A blob of a Hugging Face cache is not what its name says.
    #[error("{file} links to blob {blob}, whose content has SHA-256 {found}")]
    BlobName {
        /// The link.
        file: String,
        /// The blob's file name, 64 hex digits.
        blob: String,
        /// Digest of its content.
        found: Digest,
    },
    /// The folder holds a file that would change what the model computes.
    #[error("{file} is present and not supported")]
    UnsupportedFile {
        /// The file.
        file: String,
    },
    /// A file that must be JSON is not, or repeats a key.
    #[error("{file} is not valid JSON: {reason}")]
    Json {
        /// The file.
        file: String,
        /// What is wrong, with line and column where known.
        reason: String,
    },
    /// A required field is absent.
    #[error("{file}: field {field} is missing")]
    MissingField {
        /// The file.
        file: String,
        /// The field.
        field: String,
    },
    /// A field has a value that no model can have.
    #[error("{file}: field {field} is {value}, expected {expected}")]
    InvalidField {
        /// The file.
        file: String,
        /// The field.
        field: String,
        /// Its value, as JSON.
        value: String,
        /// What it must be.
        expected: String,
    },
    /// A field has a value that would change the computation in a way that is
    /// not modelled.
    #[error("{file}: field {field} is {value}, only {supported} is supported")]
    UnsupportedField {
        /// The file.
        file: String,
        /// The field.
        field: String,
        /// Its value, as JSON.
        value: String,
        /// What is understood.
        supported: String,
    },
    /// A field is not known, so it may change the computation.
    #[error("{file}: field {field} (value {value}) is not understood")]
    UnknownField {
        /// The file.
        file: String,
        /// The field.
        field: String,
        /// Its value, as JSON.
        value: String,
    },
    /// Both a single weight file and an index of shards are there.
    #[error("{folder} has both model.safetensors and model.safetensors.index.json")]
    TwoWeightSets {
        /// The folder.
        folder: PathBuf,
    },
    /// The index places a tensor in a file that is not beside it.
    #[error(
        "model.safetensors.index.json: tensor {tensor} is placed in {shard:?}, not a .safetensors file of the folder"
    )]
    EscapingShard {
        /// The key.
        tensor: String,
        /// Its value.
        shard: String,
    },
    /// The index and a shard disagree on where a tensor is.
    #[error("tensor {tensor} is in {found}, the index says {expected}")]
    IndexDisagrees {
        /// The tensor.
        tensor: String,
        /// What the index says.
        expected: String,
        /// Where it is.
        found: String,
    },
    /// A weight file is not valid safetensors.
    #[error("{file} is not a valid safetensors file: {reason}")]
    Safetensors {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A tensor of the architecture is absent.
    #[error("tensor {tensor} is missing{}", note(.reason))]
    MissingTensor {
        /// The tensor.
        tensor: String,
        /// Why it is needed, if that is not plain; may be empty.
        reason: String,
    },
    /// A tensor is not part of the architecture.
    #[error("tensor {tensor} in {file} is not part of the architecture ({count} such tensors)")]
    UnknownTensor {
        /// The first such tensor, by name.
        tensor: String,
        /// The file that has it.
        file: String,
        /// How many there are.
        count: usize,
    },
    /// A tensor is not bfloat16.
    #[error("tensor {tensor} has type {found}, only BF16 is supported")]
    TensorType {
        /// The tensor.
        tensor: String,
        /// Its type, as safetensors names it.
        found: String,
    },
    /// A tensor does not have the shape that the configuration implies.
    #[error("tensor {tensor} has shape {found:?}, expected {expected:?}")]
    TensorShape {
        /// The tensor.
        tensor: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that the configuration implies.
        expected: Vec<usize>,
    },
    /// `tokenizer.json` cannot be used.
    #[error("tokenizer.json: {reason}")]
    Tokenizer {
        /// What is wrong.
        reason: String,
    },
    /// A text is not UTF-8, so no token ids are defined for it.
    #[error("text is not valid UTF-8 at byte {offset} of {length}")]
    NotUtf8 {
        /// Bytes before the first invalid one.
        offset: usize,
        /// Bytes of the text.
        length: usize,
    },
    /// A token id has no entry in the tokenizer.
    #[error("token id {id} is not in the tokenizer")]
    UnknownToken {
        /// The id.
        id: u32,
    },
}

impl ModelError {
    /// Says whether something is invalid, or only missing or not understood.
    pub fn kind(&self) -> Kind {
        match self {
            Self::EscapingLink { .. }
            | Self::NotAFile { .. }
            | Self::Json { .. }
            | Self::MissingField { .. }
            | Self::InvalidField { .. }
            | Self::EscapingShard { .. }
            | Self::IndexDisagrees { .. }
            | Self::Safetensors { .. }
            | Self::TensorShape { .. }
            | Self::Tokenizer { .. }
            | Self::NotUtf8 { .. } => Kind::Malformed,
            Self::Folder { .. }
            | Self::NotFound { .. }
            | Self::NotAName { .. }
            | Self::Ambiguous { .. }
            | Self::MissingFile { .. }
            | Self::MissingWeights { .. }
            | Self::MissingShard { .. }
            | Self::DanglingLink { .. }
            | Self::Unreadable { .. }
            | Self::LfsPointer { .. }
            | Self::Changed { .. }
            | Self::BlobName { .. }
            | Self::UnsupportedFile { .. }
            | Self::UnsupportedField { .. }
            | Self::UnknownField { .. }
            | Self::TwoWeightSets { .. }
            | Self::MissingTensor { .. }
            | Self::UnknownTensor { .. }
            | Self::TensorType { .. }
            | Self::UnknownToken { .. } => Kind::Incomplete,
        }
    }
}

fn list(items: &[String], none: &str) -> String {
    if items.is_empty() { none.into() } else { items.join(", ") }
}

fn note(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}
