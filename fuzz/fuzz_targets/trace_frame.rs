#![no_main]

#[path = "../src/captures.rs"]
mod captures;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| captures::frame(bytes));
