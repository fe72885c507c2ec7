// embedding.cu — GPU twin of src/recipe/embedding.rs (spec/ops.md#embedding, #last_token).
//
// One block per row; bits are copied, nothing is rounded. With a weight as the
// table and token ids as indices this is the embedding; with a value and the
// numbers of last rows it is last_token.
// table [*, columns] bf16, indices [rows] u32 -> out [rows, columns] bf16
// The engine has checked that every index is a row of the table.

extern "C" __global__ void gather_rows(const bf16* table, const uint32* indices, bf16* out, uint32 columns) {
    const size_t row = blockIdx.x;
    const bf16* from = table + (size_t)indices[row] * columns;
    bf16* to = out + row * columns;
    for (uint32 i = threadIdx.x; i < columns; i += blockDim.x) to[i] = from[i];
}
