//! A counter-signature: what an auditor states about a transcript, in a file of its own.
//!
//! It binds the transcript and the report that the auditor made on it, so that others
//! need neither the report nor the auditor's machine to count it (`spec/custody.md`).

use super::TranscriptError;
use super::cose::COUNTERSIGNATURE;
use super::key::PrivateKey;
use super::signed::{self, FormVersion, Signed, StatedVerdict};
use super::statement::Tool;
use super::wire::record;
use crate::num::Digest;

record! {
    /// What an auditor states about a transcript.
    Countersignature {
        /// Version of the form, 1.
        1 => version: FormVersion,
        /// Digest of the transcript's statement.
        2 => transcript: Digest,
        /// The verdict of the auditor's report.
        3 => verdict: StatedVerdict,
        /// SHA-256 of the report's file, the JSON of `attest verify --json`.
        4 => report: Digest,
        /// Time of signing (Unix time). The auditor's claim.
        5 => time: u64,
        /// The program that signed.
        6 => tool: Tool,
    }
}

impl Countersignature {
    /// Signs; returns the bytes of the file.
    pub fn seal(&self, key: &PrivateKey) -> Vec<u8> {
        signed::seal(COUNTERSIGNATURE, self, key)
    }

    /// Reads a file. Its signature is not checked yet.
    ///
    /// # Errors
    /// [`TranscriptError`] of class `Malformed` for anything but the one form.
    pub fn read(file: &[u8]) -> Result<Signed<Self>, TranscriptError> {
        let signed = signed::open(COUNTERSIGNATURE, file, "countersignature")?;
        let end = signed.envelope.end;
        if end != file.len() {
            return Err(TranscriptError::TrailingBytes { offset: end, count: file.len() - end });
        }
        Ok(signed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> PrivateKey {
        PrivateKey::from_seed(&[7; 32])
    }

    fn stated() -> Countersignature {
        Countersignature {
            version: FormVersion,
            transcript: Digest([1; 32]),
            verdict: StatedVerdict::Verified,
            report: Digest([2; 32]),
            time: 1_796_045_700,
            tool: Tool { name: "attest".into(), version: "0.1.0".into() },
        }
    }

    #[test]
    fn what_is_sealed_is_read_and_signed() {
        let read = Countersignature::read(&stated().seal(&key())).unwrap();
        assert_eq!(read.record, stated());
        assert!(read.envelope.is_signed_by(&key().public()));
    }

    #[test]
    fn every_flipped_bit_is_refused_or_not_signed() {
        let file = stated().seal(&key());
        for bit in 0..file.len() * 8 {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(read) = Countersignature::read(&flipped) {
                let named = read.envelope.key_id == key().public().id();
                assert!(!named || !read.envelope.is_signed_by(&key().public()), "bit {bit}");
            }
        }
        for length in 0..file.len() {
            Countersignature::read(&file[..length]).unwrap_err();
        }
        Countersignature::read(&[&file[..], &[0]].concat()).unwrap_err();
    }
}
