//! Other programs are started by the `process` module alone, and `kill` never is.

use std::fs;

use super::tokens::{Token, path_separator, tokens};
use super::tree::{Build, all_files, compiled, shown};
use super::{none, root};

/// Finds `std::process::Command` and anything of `tokio::process`, also inside `use` groups.
fn starters(tokens: &[Token]) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Some(library @ ("std" | "tokio")) = token.ident() else {
            continue;
        };
        if !path_separator(tokens, at + 1) {
            continue;
        }
        let end = tokens[at..]
            .iter()
            .position(|token| token.is(';'))
            .map_or(tokens.len(), |length| at + length);
        let path = &tokens[at + 3..end];
        for (inside, part) in path.iter().enumerate() {
            let direct = inside == 0 || path[0].is('{');
            if !direct || part.ident() != Some("process") || !path_separator(path, inside + 1) {
                continue;
            }
            let rest = &path[inside + 3..];
            let names_command = if rest.first().is_some_and(|first| first.is('{')) {
                rest.iter()
                    .take_while(|token| !token.is('}'))
                    .any(|token| token.ident() == Some("Command"))
            } else {
                rest.first()
                    .is_some_and(|first| first.ident() == Some("Command") || first.is('*'))
            };
            if library == "tokio" || names_command {
                found.push(part.line);
            }
        }
    }
    found
}

/// Finds a program named `kill` where a command is made.
fn killers(tokens: &[Token]) -> Vec<usize> {
    tokens
        .windows(4)
        .filter(|next| {
            next[0].ident() == Some("Command")
                || next[2].ident() == Some("new")
                || next[1].ident() == Some("new")
        })
        .filter_map(|next| {
            let named = next.iter().find_map(Token::text)?;
            let program = named.rsplit('/').next().unwrap_or(named);
            matches!(program, "kill" | "pkill" | "killall").then_some(next[0].line)
        })
        .collect()
}

#[test]
fn only_the_process_module_starts_programs() {
    let own = root().join("src/process");
    let mut found = Vec::new();
    for (file, build) in compiled(root()) {
        if build == Build::Tests || file.starts_with(&own) {
            continue;
        }
        for line in starters(&tokens(&fs::read_to_string(&file).unwrap())) {
            found.push(format!("{}:{line}", shown(root(), &file)));
        }
    }
    none("a program started outside src/process", &found);
}

#[test]
fn the_kill_program_is_never_run() {
    let mut found = Vec::new();
    for file in all_files(root()) {
        if file.ends_with("guards/processes.rs") {
            continue;
        }
        for line in killers(&tokens(&fs::read_to_string(&file).unwrap())) {
            found.push(format!("{}:{line}", shown(root(), &file)));
        }
    }
    none("signals are system calls, not programs", &found);
}

#[test]
fn a_planted_start_is_found() {
    for planted in [
        "use std::process::Command;",
        "use std::process::{ExitCode, Command};",
        "use std::{fs, process::Command};",
        "fn f() { std::process::Command::new(p); }",
        "use tokio::process::Child;",
        "use std::process::*;",
    ] {
        assert!(!starters(&tokens(planted)).is_empty(), "{planted}");
    }
    for innocent in [
        "use std::process::ExitCode;",
        "use crate::process::Command;",
        "fn f() { std::process::id(); }",
        "use tokio::{fs, sync};",
    ] {
        assert!(starters(&tokens(innocent)).is_empty(), "{innocent}");
    }
}

#[test]
fn a_planted_kill_is_found() {
    assert!(!killers(&tokens("Command::new(\"kill\").arg(\"-9\")")).is_empty());
    assert!(!killers(&tokens("Command::new(\"/usr/bin/pkill\")")).is_empty());
    assert!(killers(&tokens("tmux(&[\"kill-server\"])")).is_empty());
}
