//! The special-function unit.
