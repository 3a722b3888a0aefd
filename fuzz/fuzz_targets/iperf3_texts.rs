#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| landspeed_fuzz::iperf3_texts(bytes));
