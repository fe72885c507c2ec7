//! PyTorch's row reduction.
