//! Transcripts as files named on the command line: read where they are.

use std::io::Read as _;
use std::path::Path;

use super::error::{Exit, Failure};
use super::paths;
use crate::num::{Digest, Hashing};
use crate::transcript::Transcript;
use crate::verify::Input;

/// The file, or what comes through standard input (`-`) or another pipe, which is held.
pub(super) fn input(path: &Path) -> Result<Input, Failure> {
    if path == Path::new("-") {
        return Ok(Input::Bytes(paths::read_or_stdin(path)?));
    }
    // Opened once: what comes through a pipe comes once.
    let mut file = paths::open(path)?;
    let failed = |error: std::io::Error| paths::failed(path, &error);
    if file.metadata().map_err(failed)?.is_file() {
        return Ok(Input::File(file));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(Input::Bytes(bytes))
}

/// The transcript in a file.
pub(super) fn transcript(path: &Path) -> Result<Transcript, Failure> {
    input(path)?.read().map_err(|error| {
        let failure = Failure::from(error);
        Failure { message: format!("{}: {}", path.display(), failure.message), ..failure }
    })
}

/// SHA-256 of a file.
pub(super) fn sha256(path: &Path) -> Result<Digest, Failure> {
    let mut file = paths::open(path)?;
    let (mut hashing, mut piece) = (Hashing::default(), vec![0; PIECE_LEN_BYTES]);
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hashing.finish()),
            Ok(count) => hashing.update(&piece[..count]),
            Err(error) => return Err(paths::failed(path, &error)),
        }
    }
}

/// Refuses standard input where a file is read more than once.
pub(super) fn require_named(path: &Path, what: &str) -> Result<(), Failure> {
    if path == Path::new("-") {
        let message = format!("{what} needs the transcript as a file, not standard input");
        return Err(Failure::new(Exit::Usage, message));
    }
    Ok(())
}

const PIECE_LEN_BYTES: usize = 1 << 20;
