//! Verifiable AI inference, bit for bit.

pub mod cli;
pub mod conformance;
pub mod data;
pub mod engine;
pub mod isa;
pub mod model;
pub mod num;
pub mod plan;
pub mod recipe;
pub mod transcript;
pub mod verify;
