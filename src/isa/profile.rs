//! Typed, checked form of `profiles/*.toml`.
