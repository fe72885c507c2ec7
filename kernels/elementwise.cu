// elementwise.cu — GPU twin of src/recipe/elementwise.rs (spec/ops.md#add, #silu_mul).
//
// One thread per element.
// a, b [count] bf16 -> out [count] bf16

extern "C" __global__ void add(const bf16* a, const bf16* b, bf16* out, uint64 count) {
    const uint64 i = (uint64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = round_bf16(fadd(widen(a[i]), widen(b[i]))); // R1
}

extern "C" __global__ void silu_mul(const bf16* gate, const bf16* up, bf16* out, uint64 count) {
    const uint64 i = (uint64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float x = widen(gate[i]);
    const float d = fadd(1.0f, expf(-x));     // R1, R2: CUDA's accurate expf
    const bf16 s = round_bf16(fdiv(x, d));    // R3: IEEE division, lands as bf16
    out[i] = round_bf16(fmul(widen(s), widen(up[i]))); // R4
}
