//! Row gather.
