//! Two refs or session names, one a line.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (one, other) = text.split_once('\n').unwrap_or((&text, &text));
    the_loop::model::property::refs_and_session_names_are_one_to_one(one, other);
});
