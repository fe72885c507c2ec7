// Evaluates functions of one binary32 over consecutive bit patterns, for the
// sweeps of all 2^32 inputs (spec/mufu.md). Needs no header: it is compiled by NVRTC
// with the options of every kernel here (-fmad=false, no fast-math, no ftz).
//
// Every kernel has the signature (out, start, count) and writes
//   out[i] = bits of f(number with the bits start + i),  0 <= i < count.
// One thread an element, i = blockIdx.x * blockDim.x + threadIdx.x; a chunk of
// 2^24 elements is, for instance, a grid of 65,536 blocks of 256 threads.
// Kernel names are "probe_" + the names of recipe::libdevice::sweep::Function.

// The special-function unit's instruction itself; PTX's name is spelled out.
#define PROBE_INSTRUCTION(NAME, PTX)                                                         \
    extern "C" __global__ void probe_##NAME(unsigned int *out, unsigned int start,           \
                                            unsigned int count) {                            \
        unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;                              \
        if (i >= count) return;                                                              \
        float y;                                                                             \
        asm volatile(PTX " %0, %1;" : "=f"(y) : "f"(__uint_as_float(start + i)));            \
        out[i] = __float_as_uint(y);                                                         \
    }

// A function or expression of CUDA C++, as the compiler builds it.
#define PROBE_EXPRESSION(NAME, EXPRESSION)                                                   \
    extern "C" __global__ void probe_##NAME(unsigned int *out, unsigned int start,           \
                                            unsigned int count) {                            \
        unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;                              \
        if (i >= count) return;                                                              \
        float x = __uint_as_float(start + i);                                                \
        out[i] = __float_as_uint(EXPRESSION);                                                \
    }

PROBE_INSTRUCTION(ex2, "ex2.approx.ftz.f32")
PROBE_INSTRUCTION(rcp, "rcp.approx.ftz.f32")
PROBE_INSTRUCTION(rsq, "rsqrt.approx.ftz.f32")
PROBE_INSTRUCTION(lg2, "lg2.approx.ftz.f32")

PROBE_EXPRESSION(expf, expf(x))
PROBE_EXPRESSION(logf, logf(x))
PROBE_EXPRESSION(sinf, sinf(x))
PROBE_EXPRESSION(cosf, cosf(x))
PROBE_EXPRESSION(reciprocal, 1.0f / x)

// Rounding to bfloat16, the instruction behind __float2bfloat16_rn: 16 bits,
// extended with zeros.
extern "C" __global__ void probe_bf16(unsigned int *out, unsigned int start, unsigned int count) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned short y;
    asm volatile("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(__uint_as_float(start + i)));
    out[i] = y;
}
