//! The built binary: exit codes, what goes where, and the sentences.
//!
//! Every command runs with a home of its own, so that nothing of the machine's
//! configuration, models or keys takes part.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

mod bench;
mod catalog;
#[path = "../support/command.rs"]
mod command;
mod commands;
mod countersign;
mod custody;
mod diff;
mod dry_run;
mod export;
#[path = "../support/folder.rs"]
mod folder;
mod keys;
mod model_digest;
mod policy;
mod prompts;
mod readme;
mod refusals;
mod report;
mod run;
mod spot;
#[path = "../support/mod.rs"]
mod support;
mod synth;
mod trust;
mod verify;

use command::{Ended, Home, end, fails, text, tiny_model};
