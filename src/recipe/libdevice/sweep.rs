//! All 2^32 inputs of a function of one binary32, as 256 digests.
//!
//! Chunk `c` holds the inputs with the bit patterns `c·2^24` to `c·2^24 + 2^24 − 1`, in
//! order: one sign, two exponents of normal numbers. Its digest is the SHA-256 of the outputs as
//! little-endian `u32`. The same digests are formed from a GPU's outputs
//! (`kernels/probe_mufu.cu`), so hardware and model can be compared apart from
//! each other; the file is `spec/vectors/mufu_digests.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{cosf, expf, logf, sinf};
use crate::isa::mma::Simd;
use crate::isa::{fp32, mufu};
use crate::num::{Bf16, Digest, F32, sha256};

/// Inputs in one chunk (count).
pub const CHUNK: u32 = 1 << 24;
/// Chunks of a sweep (count).
pub const CHUNKS: usize = 256;

/// A function of one binary32 that can be swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// MUFU.EX2.
    Ex2,
    /// MUFU.RCP.
    Rcp,
    /// MUFU.RSQ.
    Rsq,
    /// MUFU.LG2.
    Lg2,
    /// CUDA's accurate `expf`.
    Expf,
    /// CUDA's accurate `logf`.
    Logf,
    /// CUDA's accurate `sinf`.
    Sinf,
    /// CUDA's accurate `cosf`.
    Cosf,
    /// The IEEE quotient `1/x`.
    Reciprocal,
    /// Rounding to BF16; the output's 16 bits are extended with zeros.
    Bf16,
}

impl Function {
    /// Every function, in the order of the file.
    pub const ALL: [Self; 10] = [
        Self::Ex2,
        Self::Rcp,
        Self::Rsq,
        Self::Lg2,
        Self::Expf,
        Self::Logf,
        Self::Sinf,
        Self::Cosf,
        Self::Reciprocal,
        Self::Bf16,
    ];

    /// Returns the name in files and in `ATTEST_EXHAUSTIVE`; the kernel is `probe_` + name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ex2 => "ex2",
            Self::Rcp => "rcp",
            Self::Rsq => "rsq",
            Self::Lg2 => "lg2",
            Self::Expf => "expf",
            Self::Logf => "logf",
            Self::Sinf => "sinf",
            Self::Cosf => "cosf",
            Self::Reciprocal => "reciprocal",
            Self::Bf16 => "bf16",
        }
    }

    /// Finds a function by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.name() == name)
    }

    /// Returns the output's 32 bits.
    pub fn evaluate(self, x: F32) -> u32 {
        match self {
            Self::Ex2 => mufu::ex2(x).0,
            Self::Rcp => mufu::rcp(x).0,
            Self::Rsq => mufu::rsq(x).0,
            Self::Lg2 => mufu::lg2(x).0,
            Self::Expf => expf(x).0,
            Self::Logf => logf(x).0,
            Self::Sinf => sinf(x).0,
            Self::Cosf => cosf(x).0,
            Self::Reciprocal => fp32::fdiv(F32::ONE, x).0,
            Self::Bf16 => u32::from(Bf16::round(x).0),
        }
    }
}

/// Returns the outputs of one chunk as the bytes that are digested (64 MiB).
pub fn chunk_outputs(function: Function, chunk: u8) -> Vec<u8> {
    chunk_inputs(chunk).flat_map(|x| function.evaluate(x).to_le_bytes()).collect()
}

/// Returns what [`chunk_digest`] does, computed by the function's form over slices;
/// `None` for a function that has none.
pub fn chunk_digest_of_slices(function: Function, simd: Simd, chunk: u8) -> Option<Digest> {
    let slice = match function {
        Function::Ex2 => mufu::ex2_slice,
        Function::Rcp => mufu::rcp_slice,
        Function::Rsq => mufu::rsq_slice,
        Function::Lg2
        | Function::Expf
        | Function::Logf
        | Function::Sinf
        | Function::Cosf
        | Function::Reciprocal
        | Function::Bf16 => return None,
    };
    let mut values: Vec<F32> = chunk_inputs(chunk).collect();
    slice(simd, &mut values);
    let bytes: Vec<u8> = values.into_iter().flat_map(|value| value.0.to_le_bytes()).collect();
    Some(sha256(&[&bytes]))
}

fn chunk_inputs(chunk: u8) -> impl Iterator<Item = F32> {
    let first = u32::from(chunk) * CHUNK;
    (0..CHUNK).map(move |i| F32(first + i))
}

/// Returns the digest of one chunk of the model's outputs.
pub fn chunk_digest(function: Function, chunk: u8) -> Digest {
    sha256(&[&chunk_outputs(function, chunk)])
}

/// The content of `spec/vectors/mufu_digests.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DigestFile {
    /// What a digest is made of, for readers of the file.
    pub format: String,
    /// The recorded functions by name.
    pub functions: BTreeMap<String, Recorded>,
}

impl DigestFile {
    /// The value of `format`.
    pub const FORMAT: &'static str = "SHA-256 of the outputs of inputs c*2^24 to c*2^24 + 2^24 - 1 \
        as little-endian u32, for c = 0 to 255";
    /// The provenance of digests that no hardware has confirmed yet.
    pub const MODEL: &'static str = "model";
}

/// The digests of one function.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Where the outputs come from: GPU, driver and versions, or `model`.
    pub provenance: String,
    /// 256 digests in hex, by chunk.
    pub chunks: Vec<String>,
}
