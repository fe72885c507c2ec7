//! The device, the driver and the libraries: asked for before they are opened.
//!
//! The bindings panic where a library is missing, so presence is checked first
//! and each thing that can be missing has its own sentence.

#![allow(unsafe_code)] // presence checks and version queries of the CUDA libraries

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError, sys::CUresult};
use cudarc::{cublaslt, driver, nvrtc};

use crate::data::{NVRTC_OPTIONS, kernel_digests};
use crate::engine::device::{Unfit, profile_of};
use crate::num::Digest;

/// Why the CUDA engine cannot start here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// There is no driver library.
    #[error("no NVIDIA driver found: libcuda.so.1 cannot be loaded")]
    NoDriver,
    /// There is a driver, but no GPU.
    #[error("no CUDA device found")]
    NoDevice,
    /// A library of the CUDA toolkit is missing.
    #[error("{library} not found: it cannot be loaded")]
    MissingLibrary {
        /// The library.
        library: &'static str,
    },
    /// The GPU cannot do what is asked.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// A query failed.
    #[error("{call} failed: {reason}")]
    Query {
        /// The call.
        call: &'static str,
        /// The library's own words.
        reason: String,
    },
}

/// What a transcript says about where it was made. Claims, not evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Environment {
    /// GPU, as the driver names it.
    pub gpu: String,
    /// Compute capability, such as `9.0`.
    pub compute_capability: String,
    /// Driver version, such as `580.159.04`; `unknown` where the system does
    /// not tell.
    pub driver: String,
    /// CUDA version that the driver supports, such as `13.0`.
    pub cuda_driver: String,
    /// `cublasLtGetVersion()`, such as 130100.
    pub cublaslt: u64,
    /// NVRTC version, such as `13.0`.
    pub nvrtc: String,
    /// SHA-256 of every kernel source, by file name, ascending.
    pub kernels: Vec<(&'static str, Digest)>,
    /// Options given to NVRTC, in order.
    pub nvrtc_options: &'static [&'static str],
}

/// An open GPU.
#[derive(Debug)]
pub struct Device {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    environment: Environment,
}

impl Device {
    /// Opens the first GPU.
    ///
    /// # Errors
    /// [`EnvironmentError`]: one sentence that names what is missing.
    pub fn open() -> Result<Self, EnvironmentError> {
        // SAFETY: these only try to load a library by its name.
        let (has_driver, has_cublaslt, has_nvrtc) = unsafe {
            (
                driver::sys::is_culib_present(),
                cublaslt::sys::is_culib_present(),
                nvrtc::sys::is_culib_present(),
            )
        };
        if !has_driver {
            return Err(EnvironmentError::NoDriver);
        }
        match driver::result::init() {
            Ok(()) => {}
            Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => {
                return Err(EnvironmentError::NoDevice);
            }
            Err(error) => return Err(query("cuInit", &error)),
        }
        let count = CudaContext::device_count().map_err(|e| query("cuDeviceGetCount", &e))?;
        if count < 1 {
            return Err(EnvironmentError::NoDevice);
        }
        for (present, library) in [(has_cublaslt, "libcublasLt"), (has_nvrtc, "libnvrtc")] {
            if !present {
                return Err(EnvironmentError::MissingLibrary { library });
            }
        }
        let context = CudaContext::new(0).map_err(|e| query("cuDevicePrimaryCtxRetain", &e))?;
        let environment = describe(&context)?;
        let stream = context.default_stream();
        Ok(Self { context, stream, environment })
    }

    /// Memory that nothing uses now (bytes), by the driver's word.
    ///
    /// # Errors
    /// [`EnvironmentError::Query`].
    pub fn free_memory(&self) -> Result<u64, EnvironmentError> {
        let (free, _) = self.context.mem_get_info().map_err(|e| query("cuMemGetInfo", &e))?;
        Ok(free as u64)
    }

    /// What was found.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }
}

fn describe(context: &CudaContext) -> Result<Environment, EnvironmentError> {
    let gpu = context.name().map_err(|e| query("cuDeviceGetName", &e))?;
    let (major, minor) =
        context.compute_capability().map_err(|e| query("cuDeviceGetAttribute", &e))?;
    profile_of(&gpu, (major, minor))?;
    let mut cuda = 0;
    // SAFETY: the driver was found, and writes one int.
    let status = unsafe { driver::sys::cuDriverGetVersion(&raw mut cuda) };
    status.result().map_err(|e| query("cuDriverGetVersion", &e))?;
    // SAFETY: the library was found; the call takes nothing.
    let cublaslt = unsafe { cublaslt::sys::cublasLtGetVersion() } as u64;
    let (mut nvrtc_major, mut nvrtc_minor) = (0, 0);
    // SAFETY: the library was found, and writes two ints.
    let status = unsafe { nvrtc::sys::nvrtcVersion(&raw mut nvrtc_major, &raw mut nvrtc_minor) };
    status.result().map_err(|e| query("nvrtcVersion", &e))?;
    Ok(Environment {
        gpu,
        compute_capability: format!("{major}.{minor}"),
        driver: driver_version().unwrap_or_else(|| "unknown".into()),
        // 1000 · major + 10 · minor (CUDA Driver API, cuDriverGetVersion).
        cuda_driver: format!("{}.{}", cuda / 1000, cuda % 1000 / 10),
        cublaslt,
        nvrtc: format!("{nvrtc_major}.{nvrtc_minor}"),
        kernels: kernel_digests().collect(),
        nvrtc_options: NVRTC_OPTIONS,
    })
}

/// Asks the kernel module for its version; no library interface gives it without
/// one more dependency.
fn driver_version() -> Option<String> {
    ["/sys/module/nvidia/version", "/proc/driver/nvidia/version"]
        .iter()
        .find_map(|path| version_in(&std::fs::read_to_string(path).ok()?))
}

/// The first word that is numbers separated by points.
fn version_in(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        word.contains('.')
            && word.split('.').all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    text.split_whitespace().find(is_version).map(str::to_owned)
}

fn query(call: &'static str, error: &dyn std::fmt::Display) -> EnvironmentError {
    EnvironmentError::Query { call, reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_driver_version_in_both_texts() {
        let proc = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n\
                    GCC version:  gcc version 13.3.0 (Ubuntu)\n";
        assert_eq!(version_in(proc).as_deref(), Some("580.159.04"));
        assert_eq!(version_in("580.95.05\n").as_deref(), Some("580.95.05"));
        assert_eq!(version_in("no version here.\n"), None);
    }

    #[test]
    fn a_machine_without_a_gpu_gets_one_sentence() {
        // (error, sentence)
        let cases = [
            (EnvironmentError::NoDriver, "no NVIDIA driver found: libcuda.so.1 cannot be loaded"),
            (EnvironmentError::NoDevice, "no CUDA device found"),
            (
                EnvironmentError::MissingLibrary { library: "libnvrtc" },
                "libnvrtc not found: it cannot be loaded",
            ),
        ];
        for (error, sentence) in cases {
            assert_eq!(error.to_string(), sentence);
        }
        match Device::open() {
            Ok(device) => assert!(!device.environment().gpu.is_empty()),
            Err(error) => assert!(!error.to_string().contains('\n')),
        }
    }
}
