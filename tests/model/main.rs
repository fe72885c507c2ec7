//! Reading model folders: what is accepted, and every refusal by its sentence.
//!
//! Folders are made here, tiny and whole, and then broken in one place.

#![allow(clippy::unwrap_used, clippy::panic)] // tests: a panic is their report

mod config;
mod files;
mod folder;
mod locate;
mod manifest;
mod synth;
mod tokenizer;
mod weights;
