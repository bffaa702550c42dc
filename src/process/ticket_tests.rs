use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::model::{AfterEnd, TmuxSocket};

struct Spawn {
    _root: tempfile::TempDir,
    paths: HostPaths,
    ticket: Ticket,
}

fn spawn() -> Spawn {
    let root = tempfile::tempdir().unwrap();
    let owner = OwnerId::mint();
    let ticket = Ticket {
        v: Ticket::VERSION,
        owner: owner.clone(),
        work_item: "github:o/r#1".parse().unwrap(),
        socket: TmuxSocket::Default,
        tmux: "/usr/bin/tmux".into(),
        cwd: "/".into(),
        argv: vec!["/bin/true".to_owned()],
        env: [("TOKEN".to_owned(), "secret".to_owned())].into(),
        prompt: PromptPassing::LastArgument,
        not_after_ms: 0,
        grace_ms: 1,
        after_end: AfterEnd::KeepScreen,
    };
    let paths = HostPaths::new(root.path(), &owner);
    Spawn {
        _root: root,
        paths,
        ticket,
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_revoked_ticket_keeps_no_secret() {
    let Spawn {
        _root,
        paths,
        ticket,
    } = spawn();
    issue(&paths, &ticket, "do it").unwrap();
    assert_eq!(revoke(&paths).unwrap(), Revoked::Won);
    assert_eq!(fs::read(paths.revoked()).unwrap(), b"");
    assert_eq!(state(&paths).unwrap(), TicketState::Revoked);
}

#[test]
fn a_ticket_and_its_prompt_are_private_and_read_back() {
    let Spawn {
        _root,
        paths,
        ticket,
    } = spawn();
    assert_eq!(state(&paths).unwrap(), TicketState::Absent);
    issue(&paths, &ticket, "do it").unwrap();
    assert_eq!(state(&paths).unwrap(), TicketState::Open);
    assert_eq!(mode(paths.dir()), 0o700);
    assert_eq!(mode(&paths.ticket()), 0o600);
    assert_eq!(mode(&paths.prompt()), 0o600);
    assert_eq!(fs::read(paths.prompt()).unwrap(), b"do it");
    let read: Ticket = serde_json::from_slice(&fs::read(paths.ticket()).unwrap()).unwrap();
    assert_eq!(read, ticket);
    assert_eq!(
        fs::read_dir(paths.dir()).unwrap().count(),
        2,
        "no draft is left"
    );
}

#[test]
fn one_owner_id_gets_one_ticket() {
    let Spawn {
        _root,
        paths,
        ticket,
    } = spawn();
    issue(&paths, &ticket, "").unwrap();
    for settle in [None, Some(paths.taken()), Some(paths.revoked())] {
        if let Some(settled) = settle {
            fs::rename(paths.ticket(), &settled).unwrap();
            assert!(matches!(
                issue(&paths, &ticket, ""),
                Err(TicketError::AlreadyIssued { .. })
            ));
            fs::rename(&settled, paths.ticket()).unwrap();
        }
        assert!(matches!(
            issue(&paths, &ticket, ""),
            Err(TicketError::AlreadyIssued { .. })
        ));
    }
}

#[test]
fn an_interrupted_issue_can_be_repeated() {
    let Spawn {
        _root,
        paths,
        ticket,
    } = spawn();
    make_folder(paths.dir()).unwrap();
    fs::write(paths.dir().join("ticket.new"), "{").unwrap();
    fs::write(paths.prompt(), "old").unwrap();
    assert_eq!(revoke(&paths).unwrap(), Revoked::Absent);
    issue(&paths, &ticket, "new").unwrap();
    assert_eq!(fs::read(paths.prompt()).unwrap(), b"new");
}

#[test]
fn revoking_says_who_won_however_often_it_is_asked() {
    let Spawn {
        _root,
        paths,
        ticket,
    } = spawn();
    assert_eq!(revoke(&paths).unwrap(), Revoked::Absent);
    issue(&paths, &ticket, "").unwrap();
    assert_eq!(revoke(&paths).unwrap(), Revoked::Won);
    assert_eq!(revoke(&paths).unwrap(), Revoked::Won);
    assert_eq!(state(&paths).unwrap(), TicketState::Revoked);
    fs::rename(paths.revoked(), paths.taken()).unwrap();
    assert_eq!(revoke(&paths).unwrap(), Revoked::AlreadyTaken);
    assert_eq!(state(&paths).unwrap(), TicketState::Taken);
}

#[test]
fn taking_and_revoking_never_both_win_and_never_both_lose() {
    for _ in 0..50 {
        let Spawn {
            _root,
            paths,
            ticket,
        } = spawn();
        issue(&paths, &ticket, "").unwrap();
        let (revoked, taken) = std::thread::scope(|scope| {
            let host = scope.spawn(|| fs::rename(paths.ticket(), paths.taken()).is_ok());
            (revoke(&paths).unwrap(), host.join().unwrap())
        });
        assert_eq!(revoked == Revoked::Won, !taken);
        assert_eq!(revoked == Revoked::AlreadyTaken, taken);
    }
}

#[test]
fn a_folder_that_others_could_have_prepared_is_refused() {
    let Spawn {
        _root,
        paths,
        ticket,
    } = spawn();
    make_folder(paths.dir()).unwrap();
    fs::set_permissions(paths.dir(), fs::Permissions::from_mode(0o750)).unwrap();
    let refused = issue(&paths, &ticket, "").unwrap_err().to_string();
    assert!(refused.contains("other users have access"), "{refused}");
    fs::remove_dir(paths.dir()).unwrap();
    std::os::unix::fs::symlink("/tmp", paths.dir()).unwrap();
    let refused = issue(&paths, &ticket, "").unwrap_err().to_string();
    assert!(refused.contains("link"), "{refused}");
}

#[test]
fn no_record_is_not_an_error_but_a_broken_one_is() {
    let Spawn { _root, paths, .. } = spawn();
    assert_eq!(record(&paths).unwrap(), None);
    make_folder(paths.dir()).unwrap();
    write_private(&paths.record(), b"{\"v\":1").unwrap();
    assert!(matches!(record(&paths), Err(TicketError::Malformed { .. })));
}

#[test]
fn removing_leaves_nothing_and_can_be_repeated() {
    let Spawn {
        _root,
        paths,
        ticket,
    } = spawn();
    issue(&paths, &ticket, "").unwrap();
    remove(&paths).unwrap();
    assert!(!paths.dir().exists());
    remove(&paths).unwrap();
}

#[test]
fn a_failure_proves_nothing_of_a_ticket() {
    let Spawn {
        _root,
        paths,
        ticket,
    } = spawn();
    issue(&paths, &ticket, "").unwrap();
    fs::create_dir(paths.revoked()).unwrap();
    assert!(revoke(&paths).is_err(), "it could not be moved");
    assert_eq!(state(&paths).unwrap(), TicketState::Open);

    fs::remove_dir_all(paths.dir()).unwrap();
    fs::write(paths.dir(), "no folder").unwrap();
    assert!(state(&paths).is_err());
}

#[test]
fn a_link_in_place_of_a_record_is_refused() {
    let Spawn { _root, paths, .. } = spawn();
    make_folder(paths.dir()).unwrap();
    std::os::unix::fs::symlink("/dev/null", paths.record()).unwrap();
    assert!(matches!(record(&paths), Err(TicketError::Io { .. })));
}

#[test]
fn what_hinders_a_folder_is_named() {
    let root = tempfile::tempdir().unwrap();
    let endless = root.path().join("run").join("x".repeat(300));
    let refused = make_folder(&endless).unwrap_err();
    assert!(
        matches!(refused, TicketError::Io { doing, .. } if doing == "creating"),
        "{refused}"
    );
}

#[test]
fn spawns_are_listed_by_their_folders() {
    let Spawn {
        _root: root,
        paths,
        ticket,
    } = spawn();
    let state_root = root.path();
    assert_eq!(all(state_root).unwrap(), []);
    issue(&paths, &ticket, "").unwrap();
    fs::write(HostPaths::all(state_root).join("somebody's"), "").unwrap();
    assert_eq!(all(state_root).unwrap(), [ticket.owner]);

    fs::remove_dir_all(HostPaths::all(state_root)).unwrap();
    fs::write(HostPaths::all(state_root), "no folder").unwrap();
    assert!(all(state_root).is_err());
    assert!(remove(&paths).is_err());
}
