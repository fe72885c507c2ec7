//! What a report says of a transcript, for those who sign or log it.

use std::path::Path;

use super::read;
use crate::cli::error::{Exit, Failure};
use crate::cli::paths;
use crate::num::{Digest, sha256};
use crate::transcript::Transcript;
use crate::verify::report::Verdict;

/// A report on a transcript.
pub(in crate::cli) struct Reported {
    /// The verdict, which its checks lead to.
    pub(in crate::cli) verdict: Verdict,
    /// SHA-256 of its file.
    pub(in crate::cli) digest: Digest,
}

impl Reported {
    /// Reads a report, which must be on this transcript.
    pub(in crate::cli) fn on(transcript: &Transcript, path: &Path) -> Result<Self, Failure> {
        let bytes = paths::read(path)?;
        let document = read(path, &bytes)?;
        let at_hand = transcript.digest();
        if document.transcript != Some(at_hand) {
            let path = path.display();
            let message = match document.transcript {
                Some(other) => {
                    format!("{path} is on transcript {other}, the one at hand is {at_hand}")
                }
                None => format!("{path} is on a file that is no transcript"),
            };
            return Err(Failure::new(Exit::Usage, message));
        }
        Ok(Self { verdict: document.verdict, digest: sha256(&[&bytes]) })
    }
}
