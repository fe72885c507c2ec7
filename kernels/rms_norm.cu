// rms_norm.cu — GPU twin of src/recipe/rms_norm.rs (spec/ops.md#rms_norm).
//
// One warp per run of `width` elements; each lane loads 4 BF16 at a time into 4
// partial sums. A row's bits do not depend on the number of rows.
// x [runs, width] bf16, weight [width] bf16 -> y [runs, width] bf16
// width is a multiple of 4.

extern "C" __global__ void rms_norm(const bf16* x, const bf16* weight, bf16* y, float eps,
                                    uint32 runs, uint32 width) {
    const size_t run = (size_t)blockIdx.x * blockDim.y + threadIdx.y;
    if (run >= runs) return; // a whole warp: threadIdx.y is its number
    const uint32 lane = threadIdx.x;
    x += run * width;
    y += run * width;

    // R1, R2 (S1, S2): squares into four partial sums per lane.
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (uint32 i = lane * 4; i < width; i += 32 * 4) {
        const ushort4 v = *(const ushort4*)(x + i);
        sum[0] = fadd(sum[0], fmul(widen(v.x), widen(v.x)));
        sum[1] = fadd(sum[1], fmul(widen(v.y), widen(v.y)));
        sum[2] = fadd(sum[2], fmul(widen(v.z), widen(v.z)));
        sum[3] = fadd(sum[3], fmul(widen(v.w), widen(v.w)));
    }
    // S3: left to right. S4: halving; only lanes below `offset` matter.
    float total = fadd(fadd(fadd(sum[0], sum[1]), sum[2]), sum[3]);
    for (uint32 offset = 16; offset > 0; offset /= 2)
        total = fadd(total, __shfl_down_sync(FULL_WARP, total, offset));
    total = __shfl_sync(FULL_WARP, total, 0);

    const float mean = fmul(total, fdiv(1.0f, (float)width)); // R3
    const float r = mufu_rsq(fadd(mean, eps));                // R4, R5
    for (uint32 i = lane * 4; i < width; i += 32 * 4) {
        const ushort4 v = *(const ushort4*)(x + i);
        const ushort4 w = *(const ushort4*)(weight + i);
        ushort4 out;
        // R6 inside, R7 outside.
        out.x = round_bf16(fmul(widen(w.x), widen(round_bf16(fmul(widen(v.x), r)))));
        out.y = round_bf16(fmul(widen(w.y), widen(round_bf16(fmul(widen(v.y), r)))));
        out.z = round_bf16(fmul(widen(w.z), widen(round_bf16(fmul(widen(v.z), r)))));
        out.w = round_bf16(fmul(widen(w.w), widen(round_bf16(fmul(widen(v.w), r)))));
        *(ushort4*)(y + i) = out;
    }
}
