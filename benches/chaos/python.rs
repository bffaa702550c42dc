//! The Python program whose work this one does, for a comparison under the same storm.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use the_loop::demo::github::LocalGitHub;

use crate::program::{BINARY, Program};
use crate::support::Scratch;
use crate::{REPO, gh};

/// Installs it and returns its path; what is installed stays in the target folder.
#[expect(
    clippy::disallowed_methods,
    reason = "pip needs the environment in which people run this"
)]
pub(crate) fn install() -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/the-loopy-one");
    let output = Command::new(&script)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{}: {error}", script.display()))?;
    if !output.status.success() {
        return Err(format!("{} ended with {}", script.display(), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().into())
}

impl Program {
    /// The Python program with a configuration that says what ours says, as far as it can.
    ///
    /// What it writes on GitHub is switched off: that is not what is compared, and spares it time.
    pub(crate) fn python(program: &Path, github: &LocalGitHub) -> Self {
        let scratch = Scratch::new();
        let config = json!({
            "state": { "root": scratch.state_root() },
            "polling": {
                "intervalSeconds": 1,
                "maxRetries": 20,
                "sources": [{ "provider": "github", "repos": [REPO] }],
            },
            "routing": {
                "authorizedUsers": ["ada"],
                "spawnOnUnmatched": "labeled",
                "spawnWorkdir": scratch.path("work"),
                "runner": "tmux",
                "tmux": { "resumeProbeSeconds": 0.2 },
                "maxConcurrentDispatches": 8,
                "reactions": { "enabled": false },
                "announce": { "enabled": false },
                "graph": { "enabled": false },
            },
        });
        let at = scratch.path("cli-config.yaml");
        // JSON is YAML too.
        fs::write(&at, config.to_string()).unwrap();
        symlink(std::env::current_exe().unwrap(), scratch.path("bin/gh")).unwrap();
        write_harness(&scratch);
        let address = github.url().replace("http://", "");
        Self {
            name: "the-loopy-one",
            command: program.to_owned(),
            environment: vec![
                ("THE_LOOP_CLI_CONFIG", at.into()),
                (gh::ADDRESS, address.into()),
            ],
            socket: "default".to_owned(),
            scratch,
        }
    }
}

/// Writes the `claude` that it starts: the scripted agent under the arguments of that program, and told
/// for which item it is as ours are; the prompt begins with that.
fn write_harness(scratch: &Scratch) {
    let script = format!(
        "#!/bin/sh\n\
         [ \"$1\" = --session-id ] && {{ shift; set -- --session \"$@\"; }}\n\
         for prompt; do :; done\n\
         item=${{prompt#*\"{REPO}#\"}}\n\
         export THE_LOOP_WORK_ITEM=\"github:{REPO}#${{item%%[!0-9]*}}\"\n\
         exec {BINARY} demo-agent --log {} --conversations {} \"$@\"\n",
        scratch.path("agent.jsonl").display(),
        scratch.path("conversations").display(),
    );
    let at = scratch.path("bin/claude");
    fs::write(&at, script).unwrap();
    fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).unwrap();
}
