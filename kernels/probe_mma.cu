// probe_mma.cu — mma.sync.m16n8k16 on given operands, to compare with
// src/isa/mma (spec/isa.md).
//
// One warp per tile; an output is one block FMA of 16 products.
// a [tiles, 16, 16] bf16 row-major, b [tiles, 8, 16] bf16 (column n of the
// product is row n), c [tiles, 16, 8] f32 -> d [tiles, 16, 8] f32

extern "C" __global__ void mma_tiles(const bf16* a, const bf16* b, const float* c, float* d, uint32 tiles) {
    const size_t tile = (size_t)blockIdx.x * blockDim.y + threadIdx.y;
    if (tile >= tiles) return;
    const uint32 group = threadIdx.x / 4, pair = (threadIdx.x % 4) * 2;
    const bf16* at = a + tile * 256;
    const bf16* bt = b + tile * 128;
    // Fragment layout: PTX ISA, "Matrix Fragments for mma.m16n8k16".
    uint32 fa[4];
    fa[0] = *(const uint32*)(at + group * 16 + pair);
    fa[1] = *(const uint32*)(at + (group + 8) * 16 + pair);
    fa[2] = *(const uint32*)(at + group * 16 + pair + 8);
    fa[3] = *(const uint32*)(at + (group + 8) * 16 + pair + 8);
    const uint32 b0 = *(const uint32*)(bt + group * 16 + pair);
    const uint32 b1 = *(const uint32*)(bt + group * 16 + pair + 8);
    const size_t low = tile * 128 + group * 8 + pair, high = low + 64;
    float acc[4] = {c[low], c[low + 1], c[high], c[high + 1]};
    mma_16x8x16(acc, fa, b0, b1);
    d[low] = acc[0];
    d[low + 1] = acc[1];
    d[high] = acc[2];
    d[high + 1] = acc[3];
}
