//! cuBLASLt: what it offers for a product, and computing with one of its algorithms.
//!
//! Nothing is chosen here ([`super::gemm`]).

#![allow(unsafe_code)] // cuBLASLt's C interface; cudarc's safe one hides the algorithm

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::cublaslt::{result, sys};
use cudarc::driver::{
    CudaSlice, CudaStream, CudaView, DevicePtr, DevicePtrMut, DeviceRepr, ValidAsZeroBits,
};

use super::fault::device_error;
use super::memory;
use crate::engine::EngineError;
use crate::num::Bf16;
use crate::recipe::catalog::Preference as Asked;
use crate::recipe::cublaslt::{AlgorithmDescriptor, Attributes};

/// Shape of a product: `[m, k] · [n, k]ᵀ`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Shape {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
}

impl Shape {
    /// As catalogues take it.
    pub(super) fn size(self) -> (u64, u64, u64) {
        (self.m as u64, self.n as u64, self.k as u64)
    }
}

/// The library, opened on a stream.
pub(super) struct Library {
    handle: Handle,
    stream: Arc<CudaStream>,
    workspace: CudaSlice<u8>,
}

/// An algorithm that the library offers for a product.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    algorithm: sys::cublasLtMatmulAlgo_t,
    pub(super) descriptor: AlgorithmDescriptor,
}

/// Element type of a result.
pub(super) trait Element: DeviceRepr + ValidAsZeroBits {
    const TYPE: sys::cudaDataType_t;
}

impl Element for Bf16 {
    const TYPE: sys::cudaDataType_t = sys::cudaDataType_t::CUDA_R_16BF;
}

/// The bits of binary32.
impl Element for u32 {
    const TYPE: sys::cudaDataType_t = sys::cudaDataType_t::CUDA_R_32F;
}

impl Library {
    pub(super) fn new(
        stream: &Arc<CudaStream>,
        workspace_bytes: usize,
    ) -> Result<Self, EngineError> {
        let phase = "cuBLASLt";
        let handle = result::create_handle().map_err(device_error(phase, "cublasLtCreate"))?;
        let workspace = memory::zeros(stream, phase, workspace_bytes)?;
        Ok(Self { handle: Handle(handle), stream: Arc::clone(stream), workspace })
    }

    /// Returns `x · weightᵀ` by this algorithm, each output rounded by the library to
    /// the element type.
    ///
    /// `x`: `[m, k]`; `weight`: `[n, k]`; both checked by the caller, and again here.
    pub(super) fn multiply<T: Element>(
        &mut self,
        step: &str,
        shape: Shape,
        candidate: &Candidate,
        x: &CudaView<'_, Bf16>,
        weight: &CudaSlice<Bf16>,
    ) -> Result<CudaSlice<T>, EngineError> {
        let Shape { m, n, k } = shape;
        if x.len() != m * k || weight.len() != n * k || m * n * k == 0 {
            let what = format!("operands do not fit a product of m={m} n={n} k={k}");
            return Err(EngineError::Operand { step: step.into(), what });
        }
        let needed = candidate.descriptor.workspace_bytes;
        if needed > self.workspace.len() as u64 {
            let what = format!("an algorithm needs a workspace of {needed} bytes");
            return Err(EngineError::Operand { step: step.into(), what });
        }
        let objects = Objects::new(shape, T::TYPE);
        let objects = objects.map_err(device_error(step, "cublasLt layouts"))?;
        let mut out = memory::zeros::<T>(&self.stream, step, m * n)?;
        let (one, zero) = (1.0f32, 0.0f32);
        let stream = &self.stream;
        let workspace_bytes = self.workspace.len();
        let (weight, _weight) = weight.device_ptr(stream);
        let (x, _x) = x.device_ptr(stream);
        let (workspace, _workspace) = self.workspace.device_ptr_mut(stream);
        {
            let (d, _d) = out.device_ptr_mut(stream);
            // SAFETY: the layouts describe buffers of exactly the checked lengths, each
            // an allocation of its own or whole rows of one; the library is told the
            // workspace's true size and refuses an algorithm that needs more or does
            // not fit the layouts (INVALID_VALUE, NOT_SUPPORTED), also where the
            // algorithm was offered for another element type of the result; all
            // buffers outlive the call and are used on this stream only.
            unsafe {
                result::matmul(
                    self.handle.0,
                    objects.product,
                    (&raw const one).cast(),
                    (&raw const zero).cast(),
                    weight as *const c_void,
                    objects.weight,
                    x as *const c_void,
                    objects.x,
                    d as *const c_void,
                    objects.out,
                    d as *mut c_void,
                    objects.out,
                    &raw const candidate.algorithm,
                    workspace as *mut c_void,
                    workspace_bytes,
                    stream.cu_stream().cast(),
                )
            }
            .map_err(device_error(step, "cublasLtMatmul"))?;
        }
        Ok(out)
    }

    /// What the library offers for a product with a bf16 result, its first choice first.
    pub(super) fn candidates(
        &self,
        step: &str,
        shape: Shape,
        asked: Asked,
    ) -> Result<Vec<Candidate>, EngineError> {
        let objects = Objects::new(shape, Bf16::TYPE);
        let objects = objects.map_err(device_error(step, "cublasLt layouts"))?;
        let found = self.heuristic(&objects, asked);
        let found = found.map_err(device_error(step, "cublasLtMatmulAlgoGetHeuristic"))?;
        let candidate = |found: &sys::cublasLtMatmulHeuristicResult_t| {
            let descriptor = describe(found)
                .map_err(device_error(step, "cublasLtMatmulAlgoConfigGetAttribute"))?;
            Ok(Candidate { algorithm: found.algo, descriptor })
        };
        found.iter().map(candidate).collect()
    }

    fn heuristic(
        &self,
        objects: &Objects,
        asked: Asked,
    ) -> Result<Vec<sys::cublasLtMatmulHeuristicResult_t>, result::CublasError> {
        let preference = Preference(result::create_matmul_pref()?);
        let workspace_bytes = asked.workspace_bytes;
        // SAFETY: the preference is alive; both attributes have these C types
        // (cublasLtMatmulPreferenceAttributes_t: uint32_t and uint64_t).
        unsafe {
            if let Some(mask) = asked.reduction_scheme_mask {
                result::set_matmul_pref_attribute(
                    preference.0,
                    sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                    (&raw const mask).cast(),
                    size_of::<u32>(),
                )?;
            }
            result::set_matmul_pref_attribute(
                preference.0,
                sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                (&raw const workspace_bytes).cast(),
                size_of::<u64>(),
            )?;
        }
        let empty = sys::cublasLtMatmulHeuristicResult_t {
            algo: sys::cublasLtMatmulAlgo_t { data: [0; 8] },
            workspaceSize: 0,
            state: sys::cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED,
            wavesCount: 0.0,
            reserved: [0; 4],
        };
        let mut found = vec![empty; asked.candidates];
        let mut count = 0;
        // SAFETY: all objects are alive; the library writes at most as many
        // results as it is told there is room for (a catalogue asks for at most 1024).
        let status = unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                self.handle.0,
                objects.product,
                objects.weight,
                objects.x,
                objects.out,
                objects.out,
                preference.0,
                asked.candidates as i32,
                found.as_mut_ptr(),
                &raw mut count,
            )
        };
        if status == sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED {
            return Ok(Vec::new());
        }
        status.result()?;
        found.truncate(usize::try_from(count).unwrap_or(0));
        found.retain(|r| {
            r.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS
                && r.workspaceSize <= workspace_bytes
        });
        Ok(found)
    }
}

fn describe(
    candidate: &sys::cublasLtMatmulHeuristicResult_t,
) -> Result<AlgorithmDescriptor, result::CublasError> {
    use sys::cublasLtMatmulAlgoConfigAttributes_t as Attribute;
    let read = |attribute| {
        // Attributes are of 2 or 4 bytes; a little-endian word holds either.
        let mut word = 0u32;
        for len in [size_of::<u32>(), size_of::<u16>()] {
            let mut written = 0;
            // SAFETY: the algorithm is alive, and the library writes at most `len` bytes.
            let status = unsafe {
                sys::cublasLtMatmulAlgoConfigGetAttribute(
                    &raw const candidate.algo,
                    attribute,
                    (&raw mut word).cast(),
                    len,
                    &raw mut written,
                )
            };
            // A wrong length is answered with INVALID_VALUE.
            if status != sys::cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE {
                return status.result().map(|()| word);
            }
        }
        Err(result::CublasError(sys::cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE))
    };
    let attributes = Attributes {
        id: read(Attribute::CUBLASLT_ALGO_CONFIG_ID)?,
        tile: read(Attribute::CUBLASLT_ALGO_CONFIG_TILE_ID)?,
        stages: read(Attribute::CUBLASLT_ALGO_CONFIG_STAGES_ID)?,
        split_k: read(Attribute::CUBLASLT_ALGO_CONFIG_SPLITK_NUM)?,
        reduction_scheme: read(Attribute::CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)?,
        swizzle: read(Attribute::CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING)?,
        custom_option: read(Attribute::CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION)?,
        inner_shape: read(Attribute::CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID)?,
        cluster_shape: read(Attribute::CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID)?,
    };
    Ok(AlgorithmDescriptor { attributes, workspace_bytes: candidate.workspaceSize as u64 })
}

/// Descriptors of one product. The library is column-major: our row-major
/// `weight` `[n, k]` is its `k × n`, transposed; `x` is `k × m`; out is `n × m`.
struct Objects {
    product: sys::cublasLtMatmulDesc_t,
    weight: sys::cublasLtMatrixLayout_t,
    x: sys::cublasLtMatrixLayout_t,
    out: sys::cublasLtMatrixLayout_t,
}

impl Objects {
    fn new(
        Shape { m, n, k }: Shape,
        result_type: sys::cudaDataType_t,
    ) -> Result<Self, result::CublasError> {
        let bf16 = sys::cudaDataType_t::CUDA_R_16BF;
        let (product, layout) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut objects = Self { product, weight: layout, x: layout, out: layout };
        objects.product = result::create_matmul_desc(
            sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
            sys::cudaDataType_t::CUDA_R_32F,
        )?;
        let (transposed, plain) = (CUBLAS_OP_T, CUBLAS_OP_N);
        // SAFETY: the descriptor is alive; both attributes are of a C enum (int32_t).
        unsafe {
            result::set_matmul_desc_attribute(
                objects.product,
                sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA,
                (&raw const transposed).cast(),
                size_of::<i32>(),
            )?;
            result::set_matmul_desc_attribute(
                objects.product,
                sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSB,
                (&raw const plain).cast(),
                size_of::<u32>(),
            )?;
        }
        let (m, n, k) = (m as u64, n as u64, k as u64);
        objects.weight = result::create_matrix_layout(bf16, k, n, k as i64)?;
        objects.x = result::create_matrix_layout(bf16, k, m, k as i64)?;
        objects.out = result::create_matrix_layout(result_type, n, m, n as i64)?;
        Ok(objects)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // SAFETY: each was made by its create call or is null, and is freed once;
        // a failure to free leaves nothing to do.
        unsafe {
            for layout in [self.weight, self.x, self.out] {
                if !layout.is_null() {
                    let _ = result::destroy_matrix_layout(layout);
                }
            }
            if !self.product.is_null() {
                let _ = result::destroy_matmul_desc(self.product);
            }
        }
    }
}

struct Preference(sys::cublasLtMatmulPreference_t);

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: made by `create_matmul_pref`, freed once.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}

struct Handle(sys::cublasLtHandle_t);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by `create_handle`, freed once.
        let _ = unsafe { result::destroy_handle(self.0) };
    }
}

/// `cublasOperation_t` of cublas_api.h, which the bindings leave out.
const CUBLAS_OP_N: i32 = 0;
const CUBLAS_OP_T: i32 = 1;
