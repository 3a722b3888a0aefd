#![no_main]

#[path = "../src/filters.rs"]
mod filters;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    filters::program(bytes);
    filters::filter(&String::from_utf8_lossy(bytes));
});
