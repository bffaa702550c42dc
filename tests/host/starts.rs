//! How the harness is started.

use std::fs;

use the_loop::model::{Ending, PromptPassing};
use the_loop::process::identity::{Life, boot_id, life};

use crate::hosted::{Hosted, PANE, SESSION};
use crate::tmux::wait_for;

#[test]
fn a_started_harness_is_recorded_with_its_host_and_its_pane() {
    let mut it = Hosted::new("exec sleep 600").start();
    let (host, harness) = it.wait_until_running();
    let record = it.record().unwrap();
    assert_eq!(record.owner, it.ticket.owner);
    assert_eq!(record.boot, boot_id());
    let seen = it.tmux.ok(&[
        "display-message",
        "-p",
        "-t",
        PANE,
        "#{pane_id} #{pane_pid}",
    ]);
    assert_eq!(seen, format!("{} {host}", record.pane));
    assert_ne!(host.pid, harness.pid);
    assert_eq!(it.option(), "");
}

#[test]
fn a_record_that_could_not_be_written_is_written_while_the_harness_runs() {
    let mut it = Hosted::new(": > $DIR/runs; exec sleep 600");
    it.issue();
    // In the way of the record's draft.
    let obstacle = it.paths.record().with_extension("new");
    fs::create_dir(&obstacle).unwrap();
    it.create(SESSION);
    it.wait_for_file("runs");
    assert_eq!(it.record(), None);

    fs::remove_dir(&obstacle).unwrap();

    let (_, harness) = it.wait_until_running();
    assert_eq!(life(&harness), Life::Running);
}

#[test]
fn a_missing_program_is_a_failed_start_that_names_it() {
    let mut it = Hosted::new("");
    it.ticket.argv = vec!["/nonexistent/agent".to_owned()];
    let it = it.start();
    let (_, ending) = it.wait_for_end();
    let Ending::Failed(why) = ending else {
        panic!("{ending:?}");
    };
    assert!(
        why.contains("/nonexistent/agent cannot be executed"),
        "{why}"
    );
    it.wait_for_option("failed");
    it.tmux
        .wait_for_text(PANE, "[the-loop] agent could not be started");
}

#[test]
fn a_script_without_its_interpreter_is_a_failed_start_too() {
    use std::os::unix::fs::PermissionsExt;

    let mut it = Hosted::new("");
    let script = it.file("agent");
    fs::write(&script, "#!/nonexistent/python\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    it.ticket.argv = vec![script.to_str().unwrap().to_owned()];
    let it = it.start();
    it.tmux.wait_for_text(PANE, "interpreter");
    assert!(matches!(it.wait_for_end().1, Ending::Failed(_)));
}

#[test]
fn a_directory_that_cannot_be_entered_is_a_failed_start() {
    let mut it = Hosted::new("echo ran > $DIR/ran");
    it.ticket.cwd = it.file("missing");
    let it = it.start();
    let (record, ending) = it.wait_for_end();
    assert!(matches!(&ending, Ending::Failed(why) if why.contains("cannot be entered")));
    assert_eq!(record.phase.harness(), None);
    it.wait_for_option("failed");
    it.tmux.wait_for_text(PANE, "cannot be entered");
    assert!(!it.file("ran").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn the_harness_sees_exactly_the_environment_of_its_ticket_and_no_foreign_descriptor() {
    use std::collections::BTreeMap;

    let mut it = Hosted::new(
        "cat /proc/$$/environ > $DIR/e; for f in 3 4 5 6 7 8 9; do [ ! -e /proc/$$/fd/$f ] || echo $f; done > $DIR/f; grep -E 'Sig(Blk|Ign)' /proc/self/status > $DIR/s; \
         pwd > $DIR/p; : > $DIR/done; exec sleep 600",
    );
    it.ticket
        .env
        .insert("TMUX".to_owned(), "/somewhere,1,0".to_owned());
    it.ticket
        .env
        .insert("ODD".to_owned(), "a=b\nc 'd' ü".to_owned());
    let mut it = it.start();
    it.wait_until_running();
    it.wait_for_file("done");
    let environment = fs::read_to_string(it.file("e")).unwrap();
    let seen: BTreeMap<String, String> = environment
        .split_terminator('\0')
        .map(|entry| entry.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut expected = it.ticket.env.clone();
    expected.remove("TMUX");
    let terminal = it.tmux.ok(&["show-options", "-gv", "default-terminal"]);
    expected.insert("TERM".to_owned(), terminal);
    expected.insert(
        "THE_LOOP_OWNER".to_owned(),
        it.ticket.owner.as_str().to_owned(),
    );
    assert_eq!(seen, expected);
    let descriptors = fs::read_to_string(it.file("f")).unwrap();
    assert_eq!(descriptors, "");
    let signals = fs::read_to_string(it.file("s")).unwrap();
    let (blocked, ignored) = signals.trim().split_once('\n').unwrap();
    assert_eq!(blocked, "SigBlk:\t0000000000000000");
    let ignored = u64::from_str_radix(ignored.rsplit('\t').next().unwrap(), 16).unwrap();
    assert_eq!(ignored & (1 << 12), 0, "a broken pipe ends programs again");
    let cwd = fs::read_to_string(it.file("p")).unwrap();
    assert_eq!(cwd.trim(), it.ticket.cwd.to_str().unwrap());
}

#[test]
fn a_prompt_of_32_kb_with_odd_characters_arrives_intact() {
    let mut it =
        Hosted::new("printf %s \"$1\" > $DIR/new; mv $DIR/new $DIR/prompt; exec sleep 600");
    it.ticket.prompt = PromptPassing::LastArgument;
    let odd = "-- \"q\" 'a' `b` $(c) ${D} \\ ; kill-server;\n\t#{pane_id} %0 ünï 🙂 \u{1b}[201~ ;";
    it.prompt = odd.repeat(32 * 1024 / odd.len());
    let mut it = it.start();
    it.wait_until_running();
    let arrived = it.wait_for_file("prompt");
    assert_eq!(arrived, it.prompt);
}

#[test]
fn a_prompt_that_no_argument_can_hold_is_a_failed_start() {
    let mut it = Hosted::new("exec sleep 600");
    it.ticket.prompt = PromptPassing::LastArgument;
    it.prompt = "x".repeat(131_072);
    let it = it.start();
    let (_, ending) = it.wait_for_end();
    assert!(matches!(&ending, Ending::Failed(why) if why.contains("131072 bytes")));
}

#[test]
fn the_harness_has_the_terminal() {
    let mut it = Hosted::new("read line; echo \"got <$line>\"; exec sleep 600").start();
    let (_, harness) = it.wait_until_running();
    it.tmux.ok(&["send-keys", "-t", PANE, "hello", "Enter"]);
    it.tmux.wait_for_text(PANE, "got <hello>");
    // tmux names the foreground process, which becomes this one after what it says.
    let question = [
        "display-message",
        "-p",
        "-t",
        PANE,
        "#{pane_current_command}",
    ];
    wait_for(&format!("process {harness} in front"), || {
        it.tmux.ok(&question) == "sleep"
    });
}
