//! Values in device memory.

#![allow(unsafe_code)] // one marker implementation

use cudarc::driver::{CudaSlice, DeviceRepr, ValidAsZeroBits};

use crate::num::Bf16;

// SAFETY: `Bf16` is a transparent `u16`, as the kernels declare it.
unsafe impl DeviceRepr for Bf16 {}
// SAFETY: every bit pattern is a `Bf16`.
unsafe impl ValidAsZeroBits for Bf16 {}

/// A stacked value `[rows, columns]` on the GPU.
#[derive(Debug)]
pub struct Buffer {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) elements: Elements,
}

/// Elements by type.
#[derive(Debug)]
pub(super) enum Elements {
    /// bfloat16.
    Bf16(CudaSlice<Bf16>),
    /// Integers, with the largest of them where the host has seen them.
    U32 {
        /// On the device.
        words: CudaSlice<u32>,
        /// The largest; an index is checked against it before a launch.
        largest: Option<u32>,
    },
}

/// A tensor of the checkpoint on the GPU.
#[derive(Debug)]
pub(super) struct WeightBuffer {
    pub(super) shape: Vec<usize>,
    pub(super) elements: CudaSlice<Bf16>,
}

/// Rows kept by position.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) columns: usize,
    /// Positions `0..kept` hold rows.
    pub(super) kept: usize,
    pub(super) elements: CudaSlice<Bf16>,
}
