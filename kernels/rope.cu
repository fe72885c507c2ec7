// rope.cu — GPU twin of src/recipe/rope.rs (spec/ops.md#rope).
//
// One block per token, one thread per pair (i, i + 64) of a head.
// x [rows, heads * 128] bf16, positions [rows] u32, inv_freq [64] f32
//   -> y [rows, heads * 128] bf16
// cosf and sinf are CUDA's accurate functions, not the special-function unit.

extern "C" __global__ void rope(const bf16* x, const uint32* positions, const float* inv_freq,
                                bf16* y, uint32 heads) {
    const size_t row = blockIdx.x;
    const uint32 i = threadIdx.x; // 0…63
    const float angle = fmul((float)positions[row], inv_freq[i]); // R1
    const float c = widen(round_bf16(cosf(angle)));               // R2
    const float s = widen(round_bf16(sinf(angle)));               // R2
    for (uint32 head = 0; head < heads; head++) {
        const size_t base = (row * heads + head) * 128;
        const float low = widen(x[base + i]);
        const float high = widen(x[base + i + 64]);
        // R3, R4: each product and the sum is rounded to bf16.
        const float low_c = widen(round_bf16(fmul(low, c)));
        const float high_s = widen(round_bf16(fmul(-high, s)));
        const float high_c = widen(round_bf16(fmul(high, c)));
        const float low_s = widen(round_bf16(fmul(low, s)));
        y[base + i] = round_bf16(fadd(low_c, high_s));
        y[base + i + 64] = round_bf16(fadd(high_c, low_s));
    }
}
