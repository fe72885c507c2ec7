// common.cuh — prepended to every kernel of this folder.
//
// Names of src/isa and src/num, on the GPU: every rounding is a named call.
// Built with -fmad=false -ftz=false -prec-div=true -prec-sqrt=true and without
// fast math, so nothing is fused that is not written as ffma(). No headers:
// NVRTC needs no include path.

typedef unsigned short bf16;      // a bit pattern, as in src/num/bf16.rs
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;

#define FULL_WARP 0xffffffffu

// Exact: the same value with 16 more fraction bits.
__device__ __forceinline__ float widen(bf16 x) {
    return __uint_as_float((uint32)x << 16);
}

// Nearest even; every NaN becomes 7fff (the hardware's own conversion).
__device__ __forceinline__ bf16 round_bf16(float x) {
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}

// Two roundings in one word, `low` in the low half: a register of an mma.sync.
__device__ __forceinline__ uint32 round_pair(float low, float high) {
    return (uint32)round_bf16(low) | ((uint32)round_bf16(high) << 16);
}

__device__ __forceinline__ float fadd(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float fsub(float a, float b) { return __fadd_rn(a, -b); }
__device__ __forceinline__ float fmul(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float ffma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ float fdiv(float a, float b) { return __fdiv_rn(a, b); }

// The special-function unit itself, no refinement step.
__device__ __forceinline__ float mufu_ex2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float mufu_rsq(float x) {
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// One block FMA per output (16 products): c += a · b, [16 x 16] · [16 x 8].
__device__ __forceinline__ void mma_16x8x16(float c[4], const uint32 a[4], uint32 b0, uint32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
