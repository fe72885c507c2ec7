//! Compiles the kernels with pinned options, to machine code.
//!
//! Machine code, not PTX: then the driver's own compiler takes no part.

#![allow(unsafe_code)] // NVRTC has no safe interface to machine code

use std::ffi::{CStr, CString};

use cudarc::nvrtc::{result, sys};

use crate::data::{COMMON, NVRTC_OPTIONS, kernel};

/// Why a kernel did not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct CompileError {
    /// The kernel source.
    pub file: String,
    /// The compiler's own words.
    pub reason: String,
}

/// Whether the compiler's library can be loaded.
pub fn is_present() -> bool {
    // SAFETY: this only tries to load a library by its name.
    unsafe { sys::is_culib_present() }
}

/// Compiles `source` after the common part with the pinned options.
///
/// The library must be present ([`is_present`]).
///
/// # Errors
/// [`CompileError`] with the compiler's log.
pub fn compile(file: &str, source: &str) -> Result<Vec<u8>, CompileError> {
    let failed = |reason: String| CompileError { file: file.into(), reason };
    let common = kernel(COMMON).ok_or_else(|| failed(format!("{COMMON} is missing")))?;
    let text = CString::new(format!("{common}\n{source}"))
        .map_err(|_| failed("the source contains a NUL".into()))?;
    let name = CString::new(file).map_err(|_| failed("the name contains a NUL".into()))?;
    let program = result::create_program(&text, Some(&name)).map_err(|e| failed(e.to_string()))?;
    let program = Program(program);
    // SAFETY: the program was created above and lives until `program` is dropped.
    let compiled = unsafe { result::compile_program(program.0, NVRTC_OPTIONS) };
    compiled.map_err(|error| failed(format!("{error}\n{}", program.log())))?;
    program.machine_code().map_err(|error| failed(error.to_string()))
}

struct Program(sys::nvrtcProgram);

impl Program {
    fn log(&self) -> String {
        // SAFETY: the program is alive; the log is NUL-terminated by the library.
        let log = unsafe { result::get_program_log(self.0) }.unwrap_or_default();
        let bytes: Vec<u8> = log.iter().map(|&c| c as u8).collect();
        let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
        text.to_string_lossy().into_owned()
    }

    fn machine_code(&self) -> Result<Vec<u8>, result::NvrtcError> {
        let mut len = 0;
        // SAFETY: the program is alive and compiled; the library writes one size.
        unsafe { sys::nvrtcGetCUBINSize(self.0, &raw mut len) }.result()?;
        let mut code = vec![0u8; len];
        // SAFETY: `code` has the size that the library just named.
        unsafe { sys::nvrtcGetCUBIN(self.0, code.as_mut_ptr().cast()) }.result()?;
        Ok(code)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created by `create_program`, destroyed once; a failure to free
        // leaves nothing to do.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::KERNELS;

    #[test]
    fn every_kernel_compiles_to_machine_code() {
        if !is_present() {
            println!("skipped: libnvrtc cannot be loaded");
            return;
        }
        // The folder, so that probes are compiled too.
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels");
        let mut compiled = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "cu") {
                let file = path.file_name().unwrap().to_string_lossy().into_owned();
                let code = compile(&file, &std::fs::read_to_string(&path).unwrap()).unwrap();
                assert_eq!(&code[..4], b"\x7fELF", "{file}");
                compiled += 1;
            }
        }
        assert!(compiled >= KERNELS.len() - 1, "{compiled} kernels compiled");
    }

    #[test]
    fn a_mistake_is_reported_with_the_compilers_log() {
        if !is_present() {
            println!("skipped: libnvrtc cannot be loaded");
            return;
        }
        let error = compile("wrong.cu", "float f() { return unknown; }").unwrap_err().to_string();
        assert!(error.starts_with("wrong.cu: ") && error.contains("\"unknown\""), "{error}");
    }
}
