#![no_main]

#[path = "../src/iperf3.rs"]
mod iperf3;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iperf3::iperf3_texts(bytes));
