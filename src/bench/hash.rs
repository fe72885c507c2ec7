//! SHA-256: what digesting the weights of a model costs.

use std::hint::black_box;

use rayon::prelude::*;
use serde::Serialize;

use super::BenchError;
use super::rounds::{Budget, Checked, Figures, alternate};
use crate::num::{Digest, sha256};

/// What was measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HashReport {
    /// Bytes digested by each measurement (count).
    pub bytes: u64,
    /// Files' worth of bytes that are digested beside each other on all cores.
    pub parts: usize,
    /// Rounds (count).
    pub rounds: usize,
    /// One core, 10^9 bytes a second.
    pub one_core_gb_per_s: Figures,
    /// All threads, each with parts of its own, as files are digested.
    pub all_cores_gb_per_s: Figures,
    /// All threads over one core.
    pub scaling: Figures,
}

/// Checks two published digests, then measures `bytes` bytes.
///
/// # Errors
/// [`BenchError::Differs`].
pub fn hash(bytes: usize, budget: Budget) -> Result<HashReport, BenchError> {
    // FIPS 180-2, appendix B: one block, and a million bytes.
    for (text, digest) in [(b"abc".to_vec(), ABC), (vec![b'a'; 1_000_000], MILLION_A)] {
        let expected = Digest::from_hex(digest).into_iter().map(|digest| (0, digest));
        Checked::new("sha256", "standard's example", expected, vec![ZERO], |out| {
            out[0] = sha256(&[&text]);
        })?;
    }
    let data: Vec<u8> =
        (0..bytes).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let parts = rayon::current_num_threads() * PARTS_A_THREAD;
    let part = bytes.div_ceil(parts).max(1);
    let one_core = |out: &mut [Digest]| {
        for (out, part) in out.iter_mut().zip(black_box(&data).chunks(part)) {
            *out = sha256(&[part]);
        }
    };
    let all_cores = |out: &mut [Digest]| {
        let parts = black_box(&data).par_chunks(part);
        out.par_iter_mut().zip(parts).for_each(|(out, part)| *out = sha256(&[part]));
    };
    let mut expected = vec![ZERO; data.chunks(part).len()];
    one_core(&mut expected);
    let blank = vec![ZERO; expected.len()];
    let each = || expected.iter().copied().enumerate();
    let mut works = [
        Checked::new("sha256", "first run", each(), blank.clone(), one_core)?,
        Checked::new("sha256, all cores", "one core's digests", each(), blank, all_cores)?,
    ];
    let times = alternate(&mut works, budget);
    let (one_core, all_cores) = (&times[0], &times[1]);
    Ok(HashReport {
        bytes: bytes as u64,
        parts: expected.len(),
        rounds: one_core.rounds(),
        one_core_gb_per_s: one_core.rate(bytes as u64),
        all_cores_gb_per_s: all_cores.rate(bytes as u64),
        scaling: all_cores.speed_ratio(one_core),
    })
}

const ZERO: Digest = Digest([0; 32]);
/// Enough that threads of unequal speed end together.
const PARTS_A_THREAD: usize = 8;
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const MILLION_A: &str = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn parts_cover_all_bytes() {
        let budget = Budget { rounds: 1, time: Duration::ZERO };
        for bytes in [1, 1000, 65_537] {
            let report = hash(bytes, budget).unwrap();
            assert_eq!(report.bytes, bytes as u64);
            assert!(report.parts >= 1 && report.parts <= bytes, "{report:?}");
        }
    }
}
