//! What GitHub answers.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    the_loop::ingress::poll::property::a_payload_is_an_event_nothing_or_an_error(bytes)
});
