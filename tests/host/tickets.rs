//! A ticket starts one harness or none.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use the_loop::model::Ending;
use the_loop::process::ticket::{self, Revoked, TicketState};

use crate::hosted::Hosted;
use crate::tmux::wait_for;

const LEAVE_A_TRACE: &str = "echo ran >> $DIR/ran; exec sleep 600";

#[test]
fn a_revoked_ticket_starts_nothing_and_its_session_closes() {
    let it = Hosted::new(LEAVE_A_TRACE);
    it.issue();
    assert_eq!(ticket::revoke(&it.paths).unwrap(), Revoked::Won);
    it.create("loop-x");
    it.wait_until_closed();
    assert_eq!(it.record(), None);
    assert!(!it.file("ran").exists());
}

#[test]
fn a_ticket_past_its_time_is_revoked_by_the_host_itself() {
    let mut it = Hosted::new(LEAVE_A_TRACE);
    it.ticket.not_after_ms = 1;
    it.issue();
    it.create("loop-x");
    wait_for("the revocation", || {
        ticket::state(&it.paths).unwrap() == TicketState::Revoked
    });
    it.wait_until_closed();
    assert_eq!(it.record(), None);
    assert!(!it.file("ran").exists());
}

#[test]
fn two_hosts_with_one_ticket_start_one_harness() {
    let mut it = Hosted::new(LEAVE_A_TRACE);
    it.issue();
    for session in ["loop-a", "loop-b"] {
        it.create(session);
    }
    it.wait_until_running();
    wait_for("one of two sessions to close", || {
        it.tmux.sessions().len() == 1
    });
    wait_for("a trace", || it.file("ran").exists());
    assert_eq!(fs::read_to_string(it.file("ran")).unwrap(), "ran\n");
    assert_eq!(ticket::revoke(&it.paths).unwrap(), Revoked::AlreadyTaken);
}

#[test]
fn a_folder_that_others_can_enter_is_not_believed() {
    let it = Hosted::new(LEAVE_A_TRACE);
    it.issue();
    fs::set_permissions(it.paths.dir(), fs::Permissions::from_mode(0o755)).unwrap();
    it.create("loop-x");
    it.wait_until_closed();
    assert_eq!(ticket::state(&it.paths).unwrap(), TicketState::Open);
    assert_eq!(it.record(), None);
}

#[test]
fn a_ticket_that_cannot_be_read_is_recorded_as_failed_and_shown() {
    let it = Hosted::new(LEAVE_A_TRACE);
    it.issue();
    fs::write(it.paths.ticket(), "{\"v\":1,").unwrap();
    it.create("loop-x");
    let (record, ending) = it.wait_for_end();
    assert_eq!(record.owner, it.ticket.owner);
    let Ending::Failed(why) = ending else {
        panic!("{ending:?}");
    };
    assert!(why.contains("the ticket cannot be read"), "{why}");
    it.tmux
        .wait_for_text("=loop-x:", "the ticket cannot be read");
}

#[test]
fn a_taken_ticket_keeps_no_secret() {
    let mut it = Hosted::new(LEAVE_A_TRACE);
    it.ticket
        .env
        .insert("TOKEN".to_owned(), "very-secret".to_owned());
    let mut it = it.start();
    it.wait_until_running();
    for file in fs::read_dir(it.paths.dir()).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("very-secret"), "{}", path.display());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
}

#[test]
fn outside_of_a_pane_the_host_touches_nothing() {
    let it = Hosted::new(LEAVE_A_TRACE);
    it.issue();
    let host = format!(
        "{} host {}",
        env!("CARGO_BIN_EXE_the-loop"),
        it.paths.ticket().display()
    );
    // A shell in a pane is not the pane's own process.
    it.tmux.ok(&[
        "new-session",
        "-d",
        "-s",
        "person",
        "--",
        "sh",
        "-c",
        &format!("{host}; echo status=$?; exec sleep 600"),
    ]);
    it.tmux.wait_for_text("=person:", "status=1");
    assert_eq!(ticket::state(&it.paths).unwrap(), TicketState::Open);
}

#[test]
fn nothing_is_started_beside_processes_that_cannot_be_seen() {
    let it = Hosted::new(LEAVE_A_TRACE);
    it.issue();
    let path = it.file("state/process-table.lock");
    fs::write(&path, "another container").unwrap();
    let other = fs::File::open(&path).unwrap();
    other.lock_shared().unwrap();

    it.create("loop-x");

    it.wait_until_closed();
    assert_eq!(ticket::state(&it.paths).unwrap(), TicketState::Open);
    assert_eq!(it.record(), None);
}

#[test]
fn an_agents_host_keeps_those_away_that_cannot_see_it() {
    let mut it = Hosted::new(LEAVE_A_TRACE);
    it.issue();
    it.create("loop-x");
    it.wait_until_running();
    let lock = fs::File::open(it.file("state/process-table.lock")).unwrap();

    assert!(matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock)));
    it.tmux.ok(&["kill-server"]);

    wait_for("the lock to be free", || lock.try_lock().is_ok());
}
