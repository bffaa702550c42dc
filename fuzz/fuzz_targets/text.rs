//! A text on its way to a terminal.
#![no_main]

libfuzzer_sys::fuzz_target!(
    |bytes: &[u8]| the_loop::model::property::no_text_leaves_its_bracket(&String::from_utf8_lossy(
        bytes
    ))
);
