//! `attest conformance`: vector files against the model of the arithmetic.
