//! What the runner relies on in tmux, as one suite: the real one passes it, and so does the double
//! that other tests use. `TMUX_BIN` names another binary to put to it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the support of tests fails them by panicking"
)]

#[path = "../support/fake_tmux/mod.rs"]
#[expect(dead_code, reason = "stories use more of it")]
mod fake_tmux;
#[path = "../support/tmux.rs"]
#[expect(dead_code, reason = "the suite asks tmux through the port")]
mod tmux;

mod cases;
mod fake;
mod liar;
mod once;
mod real;
mod stage;

/// Makes each case a test of the real tmux and of the double, and a case that a liar must fail.
macro_rules! contract {
    ($($file:ident: $($case:ident),+;)+) => {
        mod on_real_tmux {
            $($(#[tokio::test] async fn $case() {
                super::cases::$file::$case(&super::real::RealStage::new()).await;
            })+)+
        }
        mod on_the_double {
            $($(#[tokio::test] async fn $case() {
                super::cases::$file::$case(&super::fake::FakeStage::new()).await;
            })+)+
        }
        /// The cases that a double passes for which every name exists and lives.
        fn passed_by_a_liar() -> Vec<&'static str> {
            let mut passed = Vec::new();
            $($(if liar::passes(|stage| Box::pin(cases::$file::$case(stage))) {
                passed.push(stringify!($case));
            })+)+
            passed
        }
        const CASES: usize = [$($(stringify!($case)),+),+].len();
    };
}

contract! {
    names:
        a_name_is_kept_as_it_was_given,
        a_target_hits_no_longer_name,
        a_name_is_held_by_one_session,
        what_is_absent_cannot_be_killed,
        an_absent_target_shows_nothing_and_is_no_error,
        ids_are_never_used_again,
        a_renamed_session_frees_its_name,
        an_argument_that_ends_in_a_semicolon_ends_no_command;
    guards:
        a_guard_sees_one_session,
        an_option_is_set_to_what_its_target_shows,
        a_pane_is_seen_in_the_session_that_is_named_with_it,
        a_later_time_than_the_limit_is_refused,
        a_time_limit_needs_the_clock_option,
        an_absent_session_has_no_live_pane,
        a_session_with_a_live_pane_is_not_killed,
        a_recorded_end_counts_for_its_own_pane_only,
        a_sequence_stops_at_its_first_failure,
        a_sequence_that_is_too_long_is_not_sent;
    pasting:
        a_text_arrives_once_in_brackets,
        a_text_of_one_megabyte_arrives_whole,
        a_program_without_brackets_gets_the_bare_text,
        buffers_never_mix,
        an_empty_text_makes_no_buffer,
        a_paste_that_fails_leaves_no_token,
        a_mode_takes_the_brackets_and_the_enter,
        input_that_is_switched_off_is_dropped_without_a_word,
        a_spectator_keeps_no_enter_away,
        an_enter_for_an_absent_pane_is_dropped,
        an_enter_comes_later_by_itself,
        a_later_enter_is_judged_when_it_comes;
    silence:
        a_stopped_server_gives_no_answer,
        a_killed_client_is_served_later,
        a_session_of_a_killed_client_is_made_later,
        a_text_of_a_killed_client_is_never_pasted,
        an_answer_comes_when_the_server_goes_on;
    servers:
        nobody_listens_where_no_server_runs,
        only_a_new_session_starts_a_server,
        a_server_ends_with_its_last_session,
        a_server_without_its_socket_is_not_found,
        an_empty_server_lists_no_panes,
        a_killed_server_takes_its_sessions_along,
        a_session_ends_with_its_program,
        a_kept_pane_is_dead,
        a_dead_pane_was_a_hosts_only_if_it_says_so,
        clients_are_counted_and_may_be_read_only,
        a_server_says_how_it_sizes_windows;
}

#[test]
fn a_double_for_which_everything_exists_and_lives_fails() {
    let passed = passed_by_a_liar();

    for telling in [
        "a_target_hits_no_longer_name",
        "a_name_is_held_by_one_session",
        "what_is_absent_cannot_be_killed",
        "an_absent_target_shows_nothing_and_is_no_error",
        "a_session_with_a_live_pane_is_not_killed",
        "a_stopped_server_gives_no_answer",
        "nobody_listens_where_no_server_runs",
        "a_session_ends_with_its_program",
    ] {
        assert!(!passed.contains(&telling), "{telling} sees no lie");
    }
    assert!(
        passed.len() * 4 < CASES,
        "most cases see the lie: {passed:?}"
    );
}
