//! Rotary embedding.
