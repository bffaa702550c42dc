//! What is left to see, and what typing into it does.

use the_loop::process::identity::{Life, life};

use crate::hosted::{Hosted, PANE};

#[test]
fn the_last_screen_stays_and_the_message_stands_below_it() {
    let it = Hosted::new("for i in 1 2 3; do echo line $i; done; exit 1").start();
    it.wait_for_option("code:1");
    let screen = it
        .tmux
        .wait_for_text(PANE, "the next event starts it again");
    assert!(screen.contains("line 1\nline 2\nline 3"), "{screen}");
    assert!(
        screen.contains("[the-loop] sh ended (exit 1) at"),
        "{screen}"
    );
}

#[test]
fn a_full_screen_program_that_was_killed_leaves_its_screen_and_a_sane_terminal() {
    let it = Hosted::new(
        "printf '\\033[?1049h\\033[2J\\033[H\\033[?25l\\033[?1000h\\033[?1006h\\033[?1004h\\033[?2004h'; \
         printf '\\033[5;10r\\033[31mthe last words\\033[7;1H'; kill -KILL $$",
    )
    .start();
    it.wait_for_option("signal:9");
    let screen = it
        .tmux
        .wait_for_text(PANE, "[the-loop] sh ended (signal 9)");
    assert!(screen.contains("the last words"), "{screen}");
    let flags = it.tmux.ok(&[
        "display-message",
        "-p",
        "-t",
        PANE,
        "#{mouse_any_flag} #{mouse_sgr_flag} #{cursor_flag} #{scroll_region_upper}-#{scroll_region_lower}",
    ]);
    assert_eq!(flags, "0 0 1 0-39");
}

#[test]
fn what_is_typed_or_pasted_into_an_ended_session_is_swallowed() {
    let it = Hosted::new("echo bye").start();
    it.wait_for_option("code:0");
    let before = it.tmux.wait_for_text(PANE, "starts it again");
    let trap = format!("touch {}", it.file("executed").display());
    it.tmux.ok(&["set-buffer", "-b", "b", &format!("{trap}\n")]);
    it.tmux
        .ok(&["paste-buffer", "-p", "-d", "-b", "b", "-t", PANE]);
    for keys in [trap.as_str(), "Enter", "C-c", "C-z", "C-\\", "C-d", "C-s"] {
        it.tmux.ok(&["send-keys", "-t", PANE, keys]);
    }
    let host = it.record().unwrap().host;
    // An echo would come with one of the next answers.
    for _ in 0..20 {
        assert_eq!(it.tmux.screen(PANE), before);
    }
    assert_eq!(life(&host), Life::Running);
    assert!(!it.file("executed").exists());
}

#[test]
fn output_that_somebody_stopped_with_a_key_does_not_hold_back_the_message() {
    let mut it = Hosted::new("echo at work; while [ ! -e $DIR/go ]; do sleep 0.02; done").start();
    it.wait_until_running();
    it.tmux.wait_for_text(PANE, "at work");
    it.tmux.ok(&["send-keys", "-t", PANE, "C-s"]);
    it.touch("go");
    it.wait_for_option("code:0");
    it.tmux.wait_for_text(PANE, "[the-loop] sh ended (exit 0)");
}
