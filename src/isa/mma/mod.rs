//! One tensor-core instruction as a chain of block FMAs.
