//! CUDA's math functions as instruction sequences.
