//! The command line of `attest`.

use std::process::ExitCode;

fn main() -> ExitCode {
    attest::cli::main()
}
