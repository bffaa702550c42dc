//! What `make demo` and `make test` do on a machine that lacks something, played with stand-ins.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tempfile::TempDir;

use super::root;

/// What the script looks for.
const TOOLS: [&str; 5] = ["cargo", "cc", "make", "git", "tmux"];

/// Installs what it is told, once its lists are new.
const APT_GET: &str = r#"
[ "$1" = update ] && : > "$MACHINE/updated"
[ -e "$MACHINE/updated" ] || exit 100
for name; do
	case $name in
	gcc) /bin/cp "$MACHINE/bin/tool" "$MACHINE/bin/cc" ;;
	make | git | tmux) /bin/cp "$MACHINE/bin/tool" "$MACHINE/bin/$name" ;;
	esac
done
"#;

const BREW: &str = r#"
for name; do
	case $name in
	git | tmux) /bin/cp "$MACHINE/bin/tool" "$MACHINE/bin/$name" ;;
	esac
done
"#;

/// A machine whose only programs are those that a test gives it.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn without(missing: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        let machine = Self { folder };
        for tool in TOOLS.iter().filter(|tool| !missing.contains(tool)) {
            machine.has(tool, "");
        }
        symlink("/usr/bin/env", machine.bin().join("env")).unwrap();
        machine.has("tool", "").has("uname", "echo Linux");
        machine
    }

    fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// Gives it a program, which notes each call.
    fn has(&self, name: &str, script: &str) -> &Self {
        let path = self.bin().join(name);
        let text = format!("#!/bin/sh\necho \"{name} $*\" >> \"$MACHINE/calls\"\n{script}\n");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn prepare(&self) -> Output {
        self.run(["/bin/sh", ".ci/prerequisites"], &[])
    }

    #[expect(clippy::disallowed_methods, reason = "runs the script that is tested")]
    fn run(&self, [shell, script]: [&str; 2], args: &[&Path]) -> Output {
        std::process::Command::new(shell)
            .arg(root().join(script))
            .args(args)
            .env_clear()
            .env("PATH", self.bin())
            .env("MACHINE", self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Returns the calls of one program.
    fn calls(&self, name: &str) -> Vec<String> {
        let calls = fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        let of_it = calls
            .lines()
            .filter(|call| call.split(' ').next() == Some(name));
        of_it.map(str::to_owned).collect()
    }
}

fn refuses(machine: &Machine, word: &str) {
    let ended = machine.prepare();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains(word), "{said}");
}

#[test]
fn demo_and_test_prepare_the_machine_first() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    for rule in [
        "demo: prerequisites ",
        "test: prerequisites ",
        "\t@.ci/prerequisites",
    ] {
        assert!(
            makefile.lines().any(|line| line.starts_with(rule)),
            "{rule}"
        );
    }
}

#[test]
fn a_machine_that_has_everything_is_left_alone() {
    let machine = Machine::without(&[]);
    machine.has("apt-get", APT_GET).has("id", "echo 0");
    assert!(machine.prepare().status.success());
    assert_eq!(machine.calls("apt-get"), [""; 0]);
}

#[test]
fn a_debian_gets_what_is_missing_from_new_lists() {
    let machine = Machine::without(&["cc", "tmux"]);
    machine.has("apt-get", APT_GET).has("id", "echo 0");
    assert!(machine.prepare().status.success());
    let calls = machine.calls("apt-get");
    assert_eq!(calls.len(), 3, "{calls:?}");
    assert!(calls[1].starts_with("apt-get update"), "{calls:?}");
    assert!(calls[2].ends_with(" gcc libc6-dev tmux"), "{calls:?}");
    assert!(machine.bin().join("tmux").exists());
}

#[test]
fn a_person_without_rights_on_a_debian_is_told_what_to_run() {
    let machine = Machine::without(&["tmux"]);
    machine.has("apt-get", APT_GET).has("id", "echo 1000");
    refuses(&machine, "apt-get install tmux");
    assert_eq!(machine.calls("apt-get"), [""; 0]);

    machine.has("sudo", r#"[ "$1" = -n ] || exec "$@""#);
    assert!(machine.prepare().status.success());
}

#[test]
fn a_mac_gets_what_is_missing_from_brew() {
    let machine = Machine::without(&["tmux"]);
    machine.has("uname", "echo Darwin");
    refuses(&machine, "brew install tmux");
    machine.has("brew", BREW);
    assert!(machine.prepare().status.success());
    assert_eq!(machine.calls("brew"), ["brew install --quiet tmux"]);

    let machine = Machine::without(&["cc"]);
    machine.has("uname", "echo Darwin");
    refuses(&machine, "xcode-select --install");
}

const NEWEST: [&str; 2] = ["/bin/bash", ".ci/newest-tmux"];

#[test]
fn a_newest_tmux_that_is_there_is_kept() {
    let machine = Machine::without(&[]);
    machine.has("apt-get", "");
    let ended = machine.run(NEWEST, &[&machine.bin()]);
    let path = machine.bin().canonicalize().unwrap().join("tmux");
    let printed = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(printed, format!("{}\n", path.display()));
    assert_eq!(machine.calls("apt-get"), [""; 0]);
}

#[test]
fn a_mac_has_the_newest_tmux_from_brew() {
    let machine = Machine::without(&["tmux"]);
    machine.has("uname", "echo Darwin");
    machine.has("brew", "[ \"$1\" != --prefix ] || echo /brewed");
    let ended = machine.run(NEWEST, &[]);
    assert_eq!(ended.stdout, b"/brewed/bin/tmux\n", "{ended:?}");
}

#[test]
fn where_no_newest_tmux_can_be_had_one_line_says_so() {
    let machine = Machine::without(&["tmux"]);
    let ended = machine.run(NEWEST, &[&machine.bin().join("none")]);
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stdout.is_empty(), "{ended:?}");
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn any_other_machine_is_told_what_to_install() {
    let machine = Machine::without(&["git", "tmux"]);
    refuses(&machine, "missing: git tmux");
    refuses(&Machine::without(&["cargo"]), "cargo is missing");
}
