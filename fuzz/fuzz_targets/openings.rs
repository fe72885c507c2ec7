//! The target `openings`; what it does is in `fuzz/bodies`.
#![no_main]

#[path = "../bodies/mod.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    bodies::run("openings", input);
});
