//! The landspeed binary: calls the crate `landspeed-cli`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    landspeed_cli::main()
}
