//! How a harness ends, by itself or otherwise.

use the_loop::model::{AfterEnd, Ending, Phase, TmuxSocket};
use the_loop::process::identity::{Life, life};
use the_loop::process::signal::{Signal, signal};

use crate::hosted::{Hosted, PANE, SESSION, wait_until_gone};
use crate::tmux::wait_for;

/// Writes its own pid and goes on, whatever it is sent.
const STUBBORN: &str = "trap '' HUP TERM; echo $$ > $DIR/n; mv $DIR/n $DIR/pid; \
                        while :; do sleep 0.05; done";

#[test]
fn exit_codes_and_signals_reach_the_record_and_the_option() {
    for (script, ending) in [
        ("exit 0", Ending::Code(0)),
        ("exit 7", Ending::Code(7)),
        ("exit 255", Ending::Code(255)),
        ("kill -KILL $$", Ending::Signal(9)),
        ("kill -SEGV $$", Ending::Signal(11)),
    ] {
        let it = Hosted::new(script).start();
        let (record, ended) = it.wait_for_end();
        assert_eq!(ended, ending, "{script}");
        assert_ne!(record.phase.harness(), None);
        it.wait_for_option(&ending.to_string());
        assert_eq!(life(&record.host), Life::Running);
    }
}

#[test]
fn a_server_can_be_named_as_well_as_found_at_a_path() {
    let mut it = Hosted::new("exit 6");
    it.ticket.socket = TmuxSocket::Name(it.tmux.name().to_owned());
    it.start().wait_for_option("code:6");
}

#[test]
fn a_request_to_stop_ends_the_whole_group_and_keeps_the_screen() {
    let mut it = Hosted::new(
        "echo at work; (trap '' TERM HUP; while :; do sleep 0.05; done) & echo $! > $DIR/n; \
         setsid sleep 600 & echo $! > $DIR/m; mv $DIR/m $DIR/daemon; mv $DIR/n $DIR/child; wait",
    )
    .start();
    let (host, harness) = it.wait_until_running();
    let child = it.process("child");
    let daemon = it.process("daemon");
    signal(&host, Signal::Terminate).unwrap();
    let (_, ending) = it.wait_for_end();
    assert_eq!(ending, Ending::Signal(15));
    wait_until_gone("the harness", &harness);
    wait_until_gone("its stubborn child", &child);
    wait_until_gone("its daemon", &daemon);
    it.wait_for_option("signal:15");
    let screen = it
        .tmux
        .wait_for_text(PANE, "[the-loop] sh was stopped (signal 15)");
    assert!(screen.contains("at work"), "{screen}");
    assert_eq!(life(&host), Life::Running);
    // Now there is nothing to keep but the screen.
    signal(&host, Signal::Terminate).unwrap();
    it.wait_until_closed();
}

#[test]
fn a_harness_that_ignores_the_request_is_killed_after_its_grace() {
    let mut it = Hosted::new(STUBBORN).start();
    let (host, harness) = it.wait_until_running();
    it.process("pid");
    signal(&host, Signal::Terminate).unwrap();
    assert_eq!(it.wait_for_end().1, Ending::Signal(9));
    wait_until_gone("the harness", &harness);
    assert_eq!(it.tmux.sessions(), [SESSION]);
}

#[test]
fn killing_the_session_ends_the_harness_and_records_it() {
    let mut it = Hosted::new("exec sleep 600").start();
    let (host, harness) = it.wait_until_running();
    it.tmux.ok(&["kill-session", "-t", "=loop-x:"]);
    wait_until_gone("the harness", &harness);
    wait_until_gone("the host", &host);
    assert_eq!(it.wait_for_end().1, Ending::Signal(1));
}

#[test]
fn killing_the_session_of_a_harness_that_ignores_it_ends_it_all_the_same() {
    let mut it = Hosted::new(STUBBORN).start();
    let (host, harness) = it.wait_until_running();
    it.process("pid");
    it.tmux.ok(&["kill-session", "-t", "=loop-x:"]);
    wait_until_gone("the harness", &harness);
    wait_until_gone("the host", &host);
    assert_eq!(it.wait_for_end().1, Ending::Signal(9));
}

#[test]
#[cfg(target_os = "linux")]
fn a_harness_does_not_outlive_a_host_that_was_killed() {
    let mut it = Hosted::new(STUBBORN).start();
    let (host, harness) = it.wait_until_running();
    it.process("pid");
    signal(&host, Signal::Kill).unwrap();
    wait_until_gone("the harness", &harness);
    it.wait_until_closed();
    let record = it.record().unwrap();
    assert_eq!(
        record.phase.harness(),
        Some(harness),
        "the record still says so"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_harness_left_on_its_terminal_ends_with_it_but_a_daemon_may_stay() {
    let mut it = Hosted::new(
        "(trap '' TERM HUP; while :; do sleep 0.05; done) & echo $! > $DIR/n; \
         setsid sleep 600 & echo $! > $DIR/m; mv $DIR/m $DIR/daemon; mv $DIR/n $DIR/child; \
         while [ ! -e $DIR/go ]; do sleep 0.02; done",
    )
    .start();
    it.wait_until_running();
    let child = it.process("child");
    let daemon = it.process("daemon");
    it.touch("go");
    assert_eq!(it.wait_for_end().1, Ending::Code(0));
    it.wait_for_option("code:0");
    wait_until_gone("the background child", &child);
    assert_eq!(life(&daemon), Life::Running);
}

#[test]
fn a_harness_that_stops_is_resumed() {
    let mut it =
        Hosted::new("read a; echo \"got <$a>\"; kill -STOP $$; echo on; exec sleep 600").start();
    it.wait_until_running();
    it.tmux.ok(&["send-keys", "-t", PANE, "C-z"]);
    it.tmux.ok(&["send-keys", "-t", PANE, "hello", "Enter"]);
    it.tmux.wait_for_text(PANE, "got <hello>");
    it.tmux.wait_for_text(PANE, "\non");
}

#[test]
fn the_record_is_written_at_once_and_the_option_when_a_frozen_server_wakes() {
    let mut it =
        Hosted::new("while [ ! -e $DIR/go ]; do sleep 0.02; done; echo bye; exit 3").start();
    let (host, _) = it.wait_until_running();
    let server = it.tmux.server();
    signal(&server, Signal::Stop).unwrap();
    it.touch("go");
    assert_eq!(it.wait_for_end().1, Ending::Code(3));
    assert_eq!(life(&host), Life::Running);
    signal(&server, Signal::Continue).unwrap();
    it.wait_for_option("code:3");
    it.tmux.wait_for_text(PANE, "[the-loop] sh ended (exit 3)");
}

#[test]
#[cfg(target_os = "linux")]
fn a_client_that_a_frozen_server_does_not_answer_is_killed_and_the_option_comes_later() {
    use the_loop::model::ProcessId;
    use the_loop::process::table;

    let clients_of = |host: &ProcessId| {
        let all = table::entries().into_iter();
        all.filter(|entry| entry.parent == host.pid).count()
    };
    let mut it = Hosted::new("while [ ! -e $DIR/go ]; do sleep 0.02; done; exit 3").start();
    let (host, _) = it.wait_until_running();
    let server = it.tmux.server();
    signal(&server, Signal::Stop).unwrap();
    it.touch("go");
    it.wait_for_end();
    wait_for("a client that waits", || clients_of(&host) == 1);
    wait_for("the client's end", || clients_of(&host) == 0);
    signal(&server, Signal::Continue).unwrap();
    it.wait_for_option("code:3");
    assert_eq!(life(&host), Life::Running);
}

#[test]
fn a_record_that_cannot_be_written_is_written_later() {
    let mut it = Hosted::new("while [ ! -e $DIR/go ]; do sleep 0.02; done; exit 4").start();
    it.wait_until_running();
    // A folder in the draft's place fails for every user, root included.
    let obstacle = it.paths.record().with_extension("new");
    std::fs::create_dir(&obstacle).unwrap();
    it.touch("go");
    it.wait_for_option("code:4");
    assert!(!matches!(it.record().unwrap().phase, Phase::Ended { .. }));
    std::fs::remove_dir(&obstacle).unwrap();
    assert_eq!(it.wait_for_end().1, Ending::Code(4));
}

#[test]
fn a_session_that_is_not_to_be_kept_closes_with_its_harness() {
    let mut it = Hosted::new("exit 5");
    it.ticket.after_end = AfterEnd::CloseSession;
    let it = it.start();
    assert_eq!(it.wait_for_end().1, Ending::Code(5));
    it.wait_until_closed();
    wait_for("the host's end", || {
        life(&it.record().unwrap().host) == Life::Gone
    });
}
