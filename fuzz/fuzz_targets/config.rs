//! A configuration file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    the_loop::config::property::a_file_is_valid_or_its_problems_have_places(bytes)
});
