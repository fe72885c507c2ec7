//! The built binary, in a home of its own, and how it ended.

#![allow(dead_code, clippy::unwrap_used, clippy::panic)] // each test target uses its own part

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

use crate::support;

/// A user's folders: configuration, working folder, nothing else.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    /// Nothing configured.
    pub(crate) fn empty() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir(home.config()).unwrap();
        home
    }

    /// With the tests' key and a trust file for it.
    pub(crate) fn configured() -> Self {
        let home = Self::empty();
        support::key().write_new(&home.config().join("key.pem")).unwrap();
        fs::write(home.config().join("trust.toml"), support::trust_text("\"*\"")).unwrap();
        home
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.0.path().join("config")
    }

    /// A path in the working folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file in the working folder.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// The binary, in this home.
    pub(crate) fn attest(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_attest"));
        command.current_dir(self.0.path()).args(args);
        for variable in [
            "ATTEST_MODELS",
            "HF_HUB_CACHE",
            "HF_HOME",
            "XDG_CACHE_HOME",
            "SOURCE_DATE_EPOCH",
            "ATTEST_PASSPHRASE",
        ] {
            command.env_remove(variable);
        }
        command.env("HOME", self.0.path()).env("ATTEST_CONFIG", self.config());
        command
    }
}

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout))
    }
}

pub(crate) fn end(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    Ended {
        exit: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Requires a failure: its exit code, nothing on stdout, and one sentence with
/// these words on stderr, hints apart.
pub(crate) fn fails(command: &mut Command, exit: i32, words: &[&str]) -> Ended {
    let ended = end(command);
    let (stdout, stderr) = (&ended.stdout, &ended.stderr);
    assert_eq!(ended.exit, exit, "{stdout}{stderr}");
    assert_eq!(stdout, "", "a failure prints no result");
    let errors = stderr.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(errors, 1, "{stderr}");
    assert!(
        stderr.lines().all(|l| l.starts_with("error: ")
            || l.starts_with("hint: ")
            || l.starts_with("note: ")),
        "{stderr}"
    );
    for word in words {
        assert!(stderr.contains(word), "{word:?} is not in {stderr:?}");
    }
    ended
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The folder of the tiny model.
pub(crate) fn tiny_model() -> PathBuf {
    support::tiny().join("model")
}
