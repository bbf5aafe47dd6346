#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| troupe_fuzz::templates::check(data));
