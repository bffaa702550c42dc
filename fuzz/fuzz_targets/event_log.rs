//! A file of the event log.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    the_loop::eventlog::property::a_log_of_any_bytes_is_read_to_its_end(bytes)
});
