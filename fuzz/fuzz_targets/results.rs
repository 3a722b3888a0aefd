#![no_main]

#[path = "../src/results.rs"]
mod claims;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| claims::result(bytes));
