//! Matrix products through cuBLASLt, with catalogued algorithms only.
//!
//! The library is asked for candidates without split-K; the first whose
//! descriptor the catalogue lists is taken, else the product is refused. So the
//! bits never depend on what the library prefers today.

#![allow(unsafe_code)] // cuBLASLt's C interface; cudarc's safe one hides the algorithm

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

use cudarc::cublaslt::{result, sys};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};

use super::fault::device_error;
use super::memory;
use crate::engine::EngineError;
use crate::num::Bf16;
use crate::recipe::Recipe;
use crate::recipe::catalog::Catalog;
use crate::recipe::cublaslt::{AlgorithmDescriptor, Dispatch, recipe_of, why_unknown};

/// Shape of a product: `[m, k] · [n, k]ᵀ`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Shape {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
}

/// Computes products and remembers which algorithm each shape got.
pub(super) struct Gemm {
    handle: Handle,
    stream: Arc<CudaStream>,
    catalog: Catalog,
    workspace: CudaSlice<u8>,
    chosen: BTreeMap<Shape, Chosen>,
}

struct Chosen {
    algorithm: sys::cublasLtMatmulAlgo_t,
    descriptor: AlgorithmDescriptor,
    recipe: Recipe,
    used: bool,
}

impl Gemm {
    pub(super) fn new(stream: &Arc<CudaStream>, catalog: Catalog) -> Result<Self, EngineError> {
        let phase = "cuBLASLt";
        let handle = result::create_handle().map_err(device_error(phase, "cublasLtCreate"))?;
        let workspace = memory::zeros(stream, phase, catalog.preference().workspace_bytes)?;
        let stream = Arc::clone(stream);
        Ok(Self { handle: Handle(handle), stream, catalog, workspace, chosen: BTreeMap::new() })
    }

    /// Distinct products really computed, ascending.
    pub(super) fn dispatch(&self) -> Vec<Dispatch> {
        let used = self.chosen.iter().filter(|(_, chosen)| chosen.used);
        used.map(|(shape, chosen)| Dispatch {
            m: shape.m,
            n: shape.n,
            k: shape.k,
            algorithm: chosen.descriptor,
        })
        .collect()
    }

    /// The algorithm that a shape gets, with its recipe.
    pub(super) fn choose(
        &mut self,
        step: &str,
        shape: Shape,
    ) -> Result<(AlgorithmDescriptor, Recipe), EngineError> {
        if !self.chosen.contains_key(&shape) {
            let objects = Objects::new(shape).map_err(device_error(step, "cublasLt layouts"))?;
            let chosen = self.search(step, shape, &objects)?;
            self.chosen.insert(shape, chosen);
        }
        let chosen = &self.chosen[&shape];
        Ok((chosen.descriptor, chosen.recipe))
    }

    /// Returns `x · weightᵀ`, each output rounded to bf16 by the library.
    ///
    /// `x`: `[m, k]`; `weight`: `[n, k]`; both checked by the caller, and again here.
    pub(super) fn multiply(
        &mut self,
        step: &str,
        shape: Shape,
        x: &CudaSlice<Bf16>,
        weight: &CudaSlice<Bf16>,
    ) -> Result<CudaSlice<Bf16>, EngineError> {
        let Shape { m, n, k } = shape;
        if x.len() != m * k || weight.len() != n * k || m * n * k == 0 {
            let what = format!("operands do not fit a product of m={m} n={n} k={k}");
            return Err(EngineError::Operand { step: step.into(), what });
        }
        self.choose(step, shape)?;
        let objects = Objects::new(shape).map_err(device_error(step, "cublasLt layouts"))?;
        let mut out = memory::zeros::<Bf16>(&self.stream, step, m * n)?;
        let Some(chosen) = self.chosen.get_mut(&shape) else {
            let what = format!("no algorithm was chosen for m={m} n={n} k={k}");
            return Err(EngineError::Operand { step: step.into(), what });
        };
        chosen.used = true;
        let (one, zero) = (1.0f32, 0.0f32);
        let stream = &self.stream;
        let workspace_bytes = self.workspace.len();
        let (weight, _weight) = weight.device_ptr(stream);
        let (x, _x) = x.device_ptr(stream);
        let (workspace, _workspace) = self.workspace.device_ptr_mut(stream);
        {
            let (d, _d) = out.device_ptr_mut(stream);
            // SAFETY: the layouts describe buffers of exactly the checked lengths;
            // the algorithm was offered for these layouts and this workspace size;
            // all buffers outlive the call and are used on this stream only.
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
                    &raw const chosen.algorithm,
                    workspace as *mut c_void,
                    workspace_bytes,
                    stream.cu_stream().cast(),
                )
            }
            .map_err(device_error(step, "cublasLtMatmul"))?;
        }
        Ok(out)
    }

    /// Asks the library and takes the first candidate with a known recipe.
    fn search(&self, step: &str, shape: Shape, objects: &Objects) -> Result<Chosen, EngineError> {
        let failed = device_error(step, "cublasLtMatmulAlgoGetHeuristic");
        let candidates = self.candidates(objects).map_err(failed)?;
        let mut offered = Vec::new();
        let size = (shape.m as u64, shape.n as u64, shape.k as u64);
        for candidate in &candidates {
            let descriptor = describe(candidate)
                .map_err(device_error(step, "cublasLtMatmulAlgoConfigGetAttribute"))?;
            if let Some(recipe) = recipe_of(&self.catalog, &descriptor, size) {
                let algorithm = candidate.algo;
                return Ok(Chosen { algorithm, descriptor, recipe, used: false });
            }
            let reason = why_unknown(&self.catalog, &descriptor, size);
            if !offered.contains(&reason) {
                offered.push(reason);
            }
        }
        let Shape { m, n, k } = shape;
        Err(EngineError::Refused {
            step: step.into(),
            reason: format!(
                "catalogue {} knows no algorithm that cuBLASLt offers for m={m} n={n} k={k}: {}",
                self.catalog.id(),
                if offered.is_empty() { "none is offered".into() } else { offered.join("; ") }
            ),
        })
    }

    fn candidates(
        &self,
        objects: &Objects,
    ) -> Result<Vec<sys::cublasLtMatmulHeuristicResult_t>, result::CublasError> {
        let asked = self.catalog.preference();
        let preference = Preference(result::create_matmul_pref()?);
        let mask = asked.reduction_scheme_mask;
        let workspace_bytes = asked.workspace_bytes;
        // SAFETY: the preference is alive; both attributes have these C types
        // (cublasLtMatmulPreferenceAttributes_t: uint32_t and uint64_t).
        unsafe {
            result::set_matmul_pref_attribute(
                preference.0,
                sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                (&raw const mask).cast(),
                size_of::<u32>(),
            )?;
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
    Ok(AlgorithmDescriptor {
        id: read(Attribute::CUBLASLT_ALGO_CONFIG_ID)?,
        tile: read(Attribute::CUBLASLT_ALGO_CONFIG_TILE_ID)?,
        stages: read(Attribute::CUBLASLT_ALGO_CONFIG_STAGES_ID)?,
        split_k: read(Attribute::CUBLASLT_ALGO_CONFIG_SPLITK_NUM)?,
        reduction_scheme: read(Attribute::CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)?,
        swizzle: read(Attribute::CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING)?,
        custom_option: read(Attribute::CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION)?,
        inner_shape: read(Attribute::CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID)?,
        cluster_shape: read(Attribute::CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID)?,
        workspace_bytes: candidate.workspaceSize as u64,
    })
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
    fn new(Shape { m, n, k }: Shape) -> Result<Self, result::CublasError> {
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
        objects.out = result::create_matrix_layout(bf16, n, m, n as i64)?;
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
