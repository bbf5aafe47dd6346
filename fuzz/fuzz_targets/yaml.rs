#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| troupe_fuzz::yaml::check(data));
