#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tunesmith_hostile::run("decode-rules", bytes));
