//! Device memory, with errors that say how much was wanted and how much is free.

use cudarc::driver::{CudaSlice, CudaStream, DeviceRepr, ValidAsZeroBits};

use super::fault::device_error;
use crate::engine::EngineError;

/// Allocates `len` elements of zero bits.
pub(super) fn zeros<T: DeviceRepr + ValidAsZeroBits>(
    stream: &std::sync::Arc<CudaStream>,
    step: &str,
    len: usize,
) -> Result<CudaSlice<T>, EngineError> {
    let bytes = len.saturating_mul(size_of::<T>());
    stream.alloc_zeros(len).map_err(|error| {
        device_error(step, "cuMemAlloc")(format!("{error}; {}", room(stream, bytes)))
    })
}

/// Copies elements into new device memory.
pub(super) fn upload<T: DeviceRepr>(
    stream: &std::sync::Arc<CudaStream>,
    step: &str,
    elements: &[T],
) -> Result<CudaSlice<T>, EngineError> {
    let bytes = size_of_val(elements);
    stream.clone_htod(elements).map_err(|error| {
        device_error(step, "cuMemcpyHtoD")(format!("{error}; {}", room(stream, bytes)))
    })
}

/// What was wanted, and what there is if the driver still answers.
fn room(stream: &CudaStream, bytes: usize) -> String {
    match stream.context().mem_get_info() {
        Ok((free, total)) => format!("{bytes} bytes wanted, {free} free of {total}"),
        Err(_) => format!("{bytes} bytes wanted"),
    }
}
