//! A comment that may command.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    the_loop::routing::property::control_words_count_only_where_they_are_said(
        &String::from_utf8_lossy(bytes),
    )
});
