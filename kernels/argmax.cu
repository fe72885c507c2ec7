// argmax.cu — GPU twin of src/recipe/argmax.rs (spec/ops.md#argmax).
//
// One block of 256 threads per row. Nothing is rounded: elements are mapped to
// integers that order like the rule, so the reduction's order cannot matter.
// x [rows, columns] bf16 -> out [rows] u32

// Rank of an element: NaNs above all and equal, -0 and +0 equal.
__device__ __forceinline__ int rank(bf16 x) {
    const int magnitude = x & 0x7fff;
    if (magnitude > 0x7f80) return 0x8000;
    return (x & 0x8000) ? -magnitude : magnitude;
}

// Larger rank first; among equals the larger complement, so the lower index.
__device__ __forceinline__ uint64 key(bf16 x, uint32 index) {
    return ((uint64)(uint32)(rank(x) + 0x8000) << 32) | (0xffffffffu - index);
}

extern "C" __global__ void argmax(const bf16* x, uint32* out, uint32 columns) {
    __shared__ uint64 best[256];
    const size_t row = blockIdx.x;
    x += row * columns;
    uint64 own = 0; // below every key: a rank is at least -7f80
    for (uint32 i = threadIdx.x; i < columns; i += 256) {
        const uint64 candidate = key(x[i], i);
        if (candidate > own) own = candidate;
    }
    best[threadIdx.x] = own;
    __syncthreads();
    for (uint32 half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half && best[threadIdx.x + half] > best[threadIdx.x])
            best[threadIdx.x] = best[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[row] = 0xffffffffu - (uint32)best[0];
}
