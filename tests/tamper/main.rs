//! Tampering: whatever is changed, by whoever, the verdict says so and why.
//!
//! `forged`: without the key. `lying`: with it. `systematic`: with it, every value.
//! `folder`: another model than the one stated. `diagnosis`: computed otherwise than stated.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

mod diagnosis;
mod folder;
mod forged;
mod lies;
mod lying;
#[path = "../support/mod.rs"]
mod support;
mod systematic;
