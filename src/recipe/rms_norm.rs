//! RMSNorm and per-head QK-norm.
