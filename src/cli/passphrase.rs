//! Where a passphrase comes from: a file, the environment or the terminal, never
//! the command line, which other users of the machine can read.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use zeroize::Zeroizing;

use super::error::{Exit, Failure};
use crate::transcript::key::Passphrase;

/// Options of commands that use a private key.
#[derive(Args, Debug)]
pub(super) struct Source {
    /// File with the key's passphrase, one line [default: $ATTEST_PASSPHRASE, else it is
    /// asked for on the terminal].
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl Source {
    /// The file, if one is named.
    pub(super) fn file(&self) -> Option<&Path> {
        self.passphrase_file.as_deref()
    }

    /// The passphrase of a key that exists.
    pub(super) fn of(&self, key: &Path) -> Result<Passphrase, Failure> {
        match self.given()? {
            Some(passphrase) => Ok(passphrase),
            None => asked(&format!("Passphrase of {}: ", key.display()), key),
        }
    }

    /// The passphrase of a key that is made, asked for twice if it is typed.
    pub(super) fn of_new(&self, key: &Path) -> Result<Passphrase, Failure> {
        if let Some(passphrase) = self.given()? {
            return Ok(passphrase);
        }
        let first = typed(&format!("New passphrase of {}: ", key.display()), key)?;
        let again = typed("The same again: ", key)?;
        if *first != *again {
            return Err(Failure::new(Exit::Usage, "the two passphrases differ; no key was made"));
        }
        checked(first.as_bytes().to_vec())
    }

    /// From a file or the environment.
    fn given(&self) -> Result<Option<Passphrase>, Failure> {
        if let Some(path) = &self.passphrase_file {
            return from_file(path).map(Some);
        }
        match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            Some(value) => checked(value.into_encoded_bytes()).map(Some),
            None => Ok(None),
        }
    }
}

/// The one line of a file that only its owner may read.
fn from_file(path: &Path) -> Result<Passphrase, Failure> {
    let refused =
        |why: String| Failure::new(Exit::Usage, format!("passphrase file {}{why}", path.display()));
    let failed = |error: std::io::Error| refused(format!(": {error}"));
    let file = std::fs::File::open(path).map_err(failed)?;
    require_private(&file.metadata().map_err(failed)?).map_err(refused)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(LIMIT as usize + 1));
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LIMIT {
        return Err(refused(format!(" is longer than {LIMIT} bytes")));
    }
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.contains(&b'\n') {
        return Err(refused(" has several lines, a passphrase has one".into()));
    }
    checked(line.to_vec())
}

/// Refuses a file that others may read. A pipe has no others.
#[cfg(unix)]
fn require_private(metadata: &std::fs::Metadata) -> Result<(), String> {
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    if !metadata.is_file() || mode & 0o077 == 0 {
        return Ok(());
    }
    Err(format!(" may be read by others (mode {mode:03o}, expected 600)"))
}

#[cfg(not(unix))]
fn require_private(_: &std::fs::Metadata) -> Result<(), String> {
    Ok(())
}

fn asked(prompt: &str, key: &Path) -> Result<Passphrase, Failure> {
    checked(typed(prompt, key)?.as_bytes().to_vec())
}

fn typed(prompt: &str, key: &Path) -> Result<Zeroizing<String>, Failure> {
    if !std::io::stdin().is_terminal() {
        let message = format!(
            "{}: a passphrase is needed, none was given, and there is no terminal to ask on",
            key.display()
        );
        return Err(Failure::new(Exit::Usage, message)
            .hint(format!("name a file with --passphrase-file, or set {VARIABLE}")));
    }
    rpassword::prompt_password(prompt)
        .map(Zeroizing::new)
        .map_err(|error| Failure::new(Exit::Usage, format!("the terminal: {error}")))
}

fn checked(bytes: Vec<u8>) -> Result<Passphrase, Failure> {
    Passphrase::new(bytes).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
}

const VARIABLE: &str = "ATTEST_PASSPHRASE";
/// Most bytes of a passphrase file.
const LIMIT: u64 = 1024;
