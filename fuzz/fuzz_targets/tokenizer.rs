//! The target `tokenizer`; what it does is in `fuzz/bodies`.
#![no_main]

#[path = "../bodies/mod.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(
    init: {
        // The library's own panics are caught where it is called; libFuzzer's hook would
        // end the process before. A panic that is not caught ends it all the same.
        std::panic::set_hook(Box::new(|panic| {
            if panic.location().is_some_and(|at| !at.file().contains("registry")) {
                eprintln!("{panic}");
            }
        }));
    },
    |input: &[u8]| {
        bodies::run("tokenizer", input);
    }
);
