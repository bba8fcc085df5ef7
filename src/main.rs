//! The binary. All code is in the library, so that tests can use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    termsmith::cli::main()
}
