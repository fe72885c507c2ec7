//! A custody log: who received, verified, counter-signed and handed over a transcript.
//!
//! The file is a sequence of signed entries (RFC 8742) with nothing between them. Each
//! names the SHA-256 of all bytes of the entry before it, signature included, so the
//! digest of the last entry, the *head*, fixes the whole log. What this module checks
//! needs no key; whose entries they are is `verify::trust::custody`'s business.

use super::TranscriptError;
use super::cose::{CUSTODY, Envelope};
use super::key::PrivateKey;
use super::signed::{self, FormVersion, Signed, StatedVerdict};
use super::statement::Tool;
use super::wire::{record, words};
use crate::num::{Digest, sha256};

words! {
    /// What was done with a transcript.
    Action {
        /// It came from somebody.
        Received => "received",
        /// It was verified; the entry has the verdict.
        Verified => "verified",
        /// A counter-signature was made; the entry has its verdict.
        Countersigned => "countersigned",
        /// It was given to somebody.
        HandedOver => "handed-over",
        /// Something else, in the words of the note.
        Note => "note",
    }
}

record! {
    /// One entry.
    Entry {
        /// Version of the form, 1.
        1 => version: FormVersion,
        /// Its number, from 1 on.
        2 => number: u64,
        /// SHA-256 of all bytes of the entry before; absent of the first.
        3 => previous: Option<Digest>,
        /// When (Unix time). The signer's claim, never before the previous entry's.
        4 => time: u64,
        /// What was done.
        5 => action: Action,
        /// Digest of the transcript's statement.
        6 => transcript: Digest,
        /// Verdict of the report.
        7 => verdict: Option<StatedVerdict>,
        /// SHA-256 of the report's file; present exactly if the verdict is.
        8 => report: Option<Digest>,
        /// In the signer's words, at most [`MAX_NOTE_LEN_BYTES`].
        9 => note: Option<String>,
        /// The program that signed.
        10 => tool: Tool,
        /// Digest of that program's own tables (`verify::tables`).
        11 => tables: Digest,
    }
}

/// Longest note (bytes).
pub const MAX_NOTE_LEN_BYTES: usize = 4 << 10;

impl Entry {
    /// Signs; returns the bytes to append.
    pub fn seal(&self, key: &PrivateKey) -> Vec<u8> {
        signed::seal(CUSTODY, self, key)
    }

    /// Checks the rules between fields of one entry.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn check(&self) -> Result<(), &'static str> {
        let needs_report = match self.action {
            Action::Verified | Action::Countersigned => true,
            Action::Received | Action::HandedOver | Action::Note => false,
        };
        if self.verdict.is_some() != self.report.is_some() {
            return Err("a verdict and the digest of its report come together");
        }
        if needs_report && self.report.is_none() {
            return Err("verified and countersigned need a report");
        }
        match &self.note {
            None if self.action == Action::Note => Err("a note needs its text"),
            Some(note) if note.is_empty() => Err("the note is empty"),
            Some(note) if note.len() > MAX_NOTE_LEN_BYTES => {
                Err("the note is longer than 4096 bytes")
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// An entry in its place.
#[derive(Debug)]
pub struct Logged {
    /// What it says.
    pub entry: Entry,
    /// Its envelope; the signature is *not* checked yet.
    pub envelope: Envelope,
    /// SHA-256 of all its bytes.
    pub digest: Digest,
}

/// Why a log is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CustodyError {
    /// Bytes that are no entry, a cut last one included.
    #[error("entry {number}, which starts at byte {start}: {source}")]
    Form {
        /// The number that it should have.
        number: u64,
        /// Where it starts.
        start: usize,
        /// What is wrong; its offsets count from `start`.
        source: TranscriptError,
    },
    /// Fields of one entry that contradict each other.
    #[error("entry {number}, which starts at byte {start}: {rule}")]
    Rule {
        /// The number that it should have.
        number: u64,
        /// Where it starts.
        start: usize,
        /// The rule.
        rule: &'static str,
    },
    /// Another number than the next one.
    #[error("byte {start}: entry {expected} is due, found entry {found}")]
    Number {
        /// Where it starts.
        start: usize,
        /// The number that it should have.
        expected: u64,
        /// The number that it has.
        found: u64,
    },
    /// An entry that was made to follow another one than it follows.
    #[error("entry {number} follows {found}, the entry before it is {expected}")]
    Chain {
        /// The entry.
        number: u64,
        /// Digest of the entry before, or `nothing`.
        expected: String,
        /// Digest in the entry, or `nothing`.
        found: String,
    },
    /// A time before that of the entry before.
    #[error("entry {number} is of Unix time {time}, the entry before it of {previous}")]
    Time {
        /// The entry.
        number: u64,
        /// Its time.
        time: u64,
        /// Time of the entry before.
        previous: u64,
    },
}

/// A log whose chain holds.
#[derive(Debug, Default)]
pub struct Log {
    entries: Vec<Logged>,
}

impl Log {
    /// Reads a file, to its last byte. A log of nothing is no error here.
    ///
    /// # Errors
    /// [`CustodyError`] at the first entry that breaks a rule.
    pub fn read(file: &[u8]) -> Result<Self, CustodyError> {
        let mut log = Self::default();
        let mut start = 0;
        while start < file.len() {
            let number = log.entries.len() as u64 + 1;
            let Signed { envelope, record: entry } =
                signed::open::<Entry>(CUSTODY, &file[start..], "entry")
                    .map_err(|source| CustodyError::Form { number, start, source })?;
            entry.check().map_err(|rule| CustodyError::Rule { number, start, rule })?;
            log.check_next(&entry, start)?;
            let end = start + envelope.end;
            let digest = sha256(&[&file[start..end]]);
            log.entries.push(Logged { entry, envelope, digest });
            start = end;
        }
        Ok(log)
    }

    /// Says whether an entry may follow; `start` is where, for messages.
    ///
    /// # Errors
    /// [`CustodyError::Number`], [`CustodyError::Chain`], [`CustodyError::Time`].
    pub fn check_next(&self, entry: &Entry, start: usize) -> Result<(), CustodyError> {
        let number = self.entries.len() as u64 + 1;
        if entry.number != number {
            return Err(CustodyError::Number { start, expected: number, found: entry.number });
        }
        let name = |digest: Option<Digest>| digest.map_or("nothing".into(), |d| d.to_string());
        if entry.previous != self.head() {
            let (expected, found) = (name(self.head()), name(entry.previous));
            return Err(CustodyError::Chain { number, expected, found });
        }
        match self.entries.last().map(|last| last.entry.time) {
            Some(previous) if entry.time < previous => {
                Err(CustodyError::Time { number, time: entry.time, previous })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The entries, in order.
    pub fn entries(&self) -> &[Logged] {
        &self.entries
    }

    /// Digest of the last entry; `None` of a log of nothing.
    pub fn head(&self) -> Option<Digest> {
        self.entries.last().map(|last| last.digest)
    }

    /// The number of the entry that was the head when the head was this one.
    pub fn number_of(&self, head: Digest) -> Option<u64> {
        let found = self.entries.iter().find(|logged| logged.digest == head);
        found.map(|logged| logged.entry.number)
    }
}

#[cfg(test)]
mod tests;
