//! The landspeed binary: see the crate `landspeed-cli` for everything it does.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    landspeed_cli::main()
}
