//! Residual addition and SiLU times up.
