// attention.cu — GPU twin of src/recipe/attention (spec/ops.md#attention).
//
// One warp per token and key/value head. The rows of the 16-row tensor-core
// tile are the query heads of that head's group; unused rows are zero and never
// stored. Tiles of 64 keys are cut by key index alone and taken from the
// token's own down to 0, so a row's bits do not depend on its batch.
// q [rows, kv_heads * group * 128] bf16, positions [rows] u32,
// keys, values [capacity, kv_heads * 128] bf16 -> out like q; group <= 16

#define HEAD_DIM 128
#define KV_TILE 64
#define PITCH (HEAD_DIM + 8) // elements; 16 more bytes keep ldmatrix free of bank conflicts

// Copies keys first … first + 63 of one head to shared memory; keys after
// `position` become +0, whatever memory holds.
__device__ __forceinline__ void load_tile(bf16* tile, const bf16* cache, size_t stride, uint32 first,
                                          uint32 position) {
    for (uint32 i = threadIdx.x; i < KV_TILE * HEAD_DIM / 8; i += 32) {
        const uint32 key = i / (HEAD_DIM / 8), chunk = i % (HEAD_DIM / 8) * 8;
        uint4 v = make_uint4(0, 0, 0, 0);
        if (first + key <= position) v = *(const uint4*)(cache + (size_t)(first + key) * stride + chunk);
        *(uint4*)(tile + key * PITCH + chunk) = v;
    }
}

// Four 8 x 8 matrices; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void ldmatrix(uint32 r[4], const bf16* row) {
    const uint32 address = (uint32)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void ldmatrix_transposed(uint32 r[4], const bf16* row) {
    const uint32 address = (uint32)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

// Maximum over the four lanes of a quad, which hold one row's columns.
__device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, 1));
    return fmaxf(x, __shfl_xor_sync(FULL_WARP, x, 2));
}

extern "C" __global__ void __launch_bounds__(32)
attention(const bf16* q, const uint32* positions, const bf16* keys, const bf16* values, bf16* out,
          uint32 kv_heads, uint32 group) {
    __shared__ __align__(16) bf16 k_tile[KV_TILE * PITCH];
    __shared__ __align__(16) bf16 v_tile[KV_TILE * PITCH];

    const float scale_log2 = __uint_as_float(0x3e0293eeu); // 1/sqrt(128) * log2(e)
    const float minus_infinity = __uint_as_float(0xff800000u);
    const size_t row = blockIdx.x;
    const uint32 kv_head = blockIdx.y;
    const uint32 lane = threadIdx.x, quad = lane / 4, t = lane % 4;
    const uint32 position = positions[row];
    const size_t stride = (size_t)kv_heads * HEAD_DIM;
    const size_t heads = (row * kv_heads + kv_head) * group; // first query head of the group
    keys += (size_t)kv_head * HEAD_DIM;
    values += (size_t)kv_head * HEAD_DIM;

    // Query heads `quad` and `quad + 8` of the group, as fragments of all 8 k-steps.
    uint32 fq[8][4];
    #pragma unroll
    for (int step = 0; step < 8; step++) {
        const bf16* low = q + (heads + quad) * HEAD_DIM + step * 16 + t * 2;
        const bf16* high = low + 8 * HEAD_DIM;
        fq[step][0] = quad < group ? *(const uint32*)low : 0;
        fq[step][1] = quad + 8 < group ? *(const uint32*)high : 0;
        fq[step][2] = quad < group ? *(const uint32*)(low + 8) : 0;
        fq[step][3] = quad + 8 < group ? *(const uint32*)(high + 8) : 0;
    }

    // Index 0: head `quad`; index 1: head `quad + 8`. A thread's `sum` is the
    // partial sum `t` of R5.
    float m[2] = {minus_infinity, minus_infinity};
    float sum[2] = {0.0f, 0.0f};
    float o[16][4];
    #pragma unroll
    for (int j = 0; j < 16; j++)
        o[j][0] = o[j][1] = o[j][2] = o[j][3] = 0.0f;

    const uint32 last = position / KV_TILE;
    for (uint32 tile = last + 1; tile-- > 0;) {
        const uint32 first = tile * KV_TILE;
        __syncwarp();
        load_tile(k_tile, keys, stride, first, position);
        load_tile(v_tile, values, stride, first, position);
        __syncwarp();

        // R1: scores; s[j] holds columns 8j + 2t and 8j + 2t + 1 of both heads.
        float s[8][4];
        #pragma unroll
        for (int j = 0; j < 8; j++) {
            s[j][0] = s[j][1] = s[j][2] = s[j][3] = 0.0f;
            #pragma unroll
            for (int step = 0; step < 8; step += 2) {
                uint32 fk[4]; // dims 0-7, 8-15 of this k-step, then of the next
                ldmatrix(fk, k_tile + (8 * j + lane % 8) * PITCH + step * 16 + lane / 8 * 8);
                mma_16x8x16(s[j], fq[step], fk[0], fk[1]);
                mma_16x8x16(s[j], fq[step + 1], fk[2], fk[3]);
            }
            #pragma unroll
            for (int c = 0; c < 4; c++)
                if (first + 8 * j + 2 * t + c % 2 > position) s[j][c] = minus_infinity;
        }

        #pragma unroll
        for (int h = 0; h < 2; h++) {
            // R2: fmaxf is FMNMX: a NaN loses to a number.
            const float prev = m[h];
            float largest = prev;
            #pragma unroll
            for (int j = 0; j < 8; j++)
                largest = fmaxf(largest, fmaxf(s[j][2 * h], s[j][2 * h + 1]));
            m[h] = quad_max(largest);
            const float cur = m[h] == minus_infinity ? 0.0f : m[h];

            // R3: two products, one subtraction, not fused.
            const float cur_scaled = fmul(cur, scale_log2);
            #pragma unroll
            for (int j = 0; j < 8; j++) {
                s[j][2 * h] = mufu_ex2(fsub(fmul(s[j][2 * h], scale_log2), cur_scaled));
                s[j][2 * h + 1] = mufu_ex2(fsub(fmul(s[j][2 * h + 1], scale_log2), cur_scaled));
            }

            // R4, R5, R6.
            if (tile == last) {
                sum[h] = s[0][2 * h];
            } else {
                const float rescale = mufu_ex2(fmul(fsub(prev, cur), scale_log2));
                sum[h] = ffma(sum[h], rescale, s[0][2 * h]);
                #pragma unroll
                for (int j = 0; j < 16; j++) {
                    o[j][2 * h] = fmul(o[j][2 * h], rescale);
                    o[j][2 * h + 1] = fmul(o[j][2 * h + 1], rescale);
                }
            }
            sum[h] = fadd(sum[h], s[0][2 * h + 1]);
            #pragma unroll
            for (int j = 1; j < 8; j++) {
                sum[h] = fadd(sum[h], s[j][2 * h]);
                sum[h] = fadd(sum[h], s[j][2 * h + 1]);
            }
        }

        // R7: the score fragment is the operand fragment of the second product.
        #pragma unroll
        for (int step = 0; step < 4; step++) {
            const uint32 fp[4] = {
                round_pair(s[2 * step][0], s[2 * step][1]),
                round_pair(s[2 * step][2], s[2 * step][3]),
                round_pair(s[2 * step + 1][0], s[2 * step + 1][1]),
                round_pair(s[2 * step + 1][2], s[2 * step + 1][3]),
            };
            #pragma unroll
            for (int j = 0; j < 16; j += 2) {
                uint32 fv[4]; // keys 0-7, 8-15 of dims 8j…, then of dims 8j + 8…
                ldmatrix_transposed(fv, v_tile + (16 * step + lane % 16) * PITCH + 8 * j + lane / 16 * 8);
                mma_16x8x16(o[j], fp, fv[0], fv[1]);
                mma_16x8x16(o[j + 1], fp, fv[2], fv[3]);
            }
        }
    }

    #pragma unroll
    for (int h = 0; h < 2; h++) {
        // R8: quad-mates 2 apart first; addition commutes, so all four agree.
        float total = fadd(sum[h], __shfl_xor_sync(FULL_WARP, sum[h], 2));
        total = fadd(total, __shfl_xor_sync(FULL_WARP, total, 1));
        const float inv = (total == 0.0f || total != total) ? 1.0f : fdiv(1.0f, total); // R9
        if (quad + 8 * h < group) {
            bf16* to = out + (heads + quad + 8 * h) * HEAD_DIM + t * 2;
            #pragma unroll
            for (int j = 0; j < 16; j++) // R10
                *(uint32*)(to + 8 * j) = round_pair(fmul(o[j][2 * h], inv), fmul(o[j][2 * h + 1], inv));
        }
    }
}
