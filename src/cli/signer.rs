//! The key that a command signs with.

use std::io::ErrorKind;
use std::path::Path;

use super::error::{Exit, Failure};
use super::output::Output;
use super::passphrase::Source;
use crate::transcript::key::{KeyError, PrivateKey, Stored};

/// Reads a private key, and asks for its passphrase if it is under one.
pub(super) fn read(path: &Path, source: &Source, output: &Output) -> Result<PrivateKey, Failure> {
    match Stored::read(path).map_err(|error| refused(path, &error))? {
        Stored::Open(key) => {
            if let Some(file) = source.file() {
                let (key, file) = (path.display(), file.display());
                output.note(&format!("note: {key} is under no passphrase; {file} was not read"));
            }
            Ok(key)
        }
        Stored::Locked(locked) => {
            let passphrase = source.of(path)?;
            locked.open(&passphrase).map_err(|error| refused(path, &error))
        }
    }
}

/// A key that cannot be used, by the name of its file.
pub(super) fn refused(path: &Path, error: &KeyError) -> Failure {
    let message =
        if error.names_file() { error.to_string() } else { format!("{}: {error}", path.display()) };
    let failure = Failure::new(Exit::Usage, message);
    match error {
        KeyError::Io { source, .. } if source.kind() == ErrorKind::NotFound => failure.hint(
            "`attest keygen` (--role auditor for reports) makes one, in the configuration folder \
             unless --out names another place",
        ),
        KeyError::Exposed { .. } => failure.hint("chmod 600 makes it its owner's only"),
        KeyError::Unrecognised
        | KeyError::OtherFormat { .. }
        | KeyError::OtherAlgorithm { .. }
        | KeyError::Damaged { .. }
        | KeyError::OtherHalf { .. }
        | KeyError::NotAPoint { .. }
        | KeyError::NotCanonical { .. }
        | KeyError::Weak { .. }
        | KeyError::Locked { .. }
        | KeyError::WrongPassphrase { .. }
        | KeyError::NoPassphrase
        | KeyError::Cipher { .. }
        | KeyError::TooLong { .. }
        | KeyError::Io { .. } => failure,
    }
}
