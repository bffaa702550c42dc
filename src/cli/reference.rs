//! The generated page of every command: `docs/cli.md`, made from what clap knows.
//!
//! `UPDATE_REFERENCES=1 cargo test references` writes it again.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};

use super::Cli;
use crate::references::{assert_up_to_date, lower_first};

const INTRODUCTION: &str = "# Command line

Generated from the code; do not edit. `the-loop <command> --help` prints the same.

A work item is written `octo/app#15` (on github.com), `github:octo/app#15`,
`github:<host>/octo/app#15`, or as the address of its page. Commands that answer take `--json` and
then print nothing else on standard output; warnings, notes and errors go to standard error. Colour is left out where
the output is no terminal or `NO_COLOR` is set. Commands work on the files of `state.root`, whether or not a daemon runs.

";

const EXIT_CODES: &str = "## Exit codes

| code | means |
|---|---|
| 0 | it did what was asked |
| 1 | it failed, or the answer is no |
| 2 | the command line or the configuration is wrong; nothing was done |
| 130 | a second signal ended `poll start` at once |

`sessions attach` becomes tmux and ends with its code. Where a command has more to say, it is said there.
";

fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut page = INTRODUCTION.to_owned();
    page.push_str("## Options of every command\n\n");
    page.push_str(&table(
        root.get_arguments().filter(|arg| arg.is_global_set()),
    ));
    page.push('\n');
    for command in visible(&root) {
        describe(&mut page, command);
    }
    page.push_str(EXIT_CODES);
    page
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
}

fn describe(page: &mut String, command: &Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_about().map(ToString::to_string);
    let usage = command.clone().render_usage().to_string();
    let usage: Vec<&str> = usage
        .trim_start_matches("Usage: ")
        .lines()
        .map(str::trim)
        .collect();
    // Writing to a string cannot fail.
    write!(
        page,
        "## `{name}`\n\n{}.\n\n```\n{}\n```\n\n",
        about.unwrap_or_default(),
        usage.join("\n")
    )
    .unwrap();
    let own = table(command.get_arguments().filter(|arg| !arg.is_global_set()));
    if !own.is_empty() {
        page.push_str(&own);
        page.push('\n');
    }
    if let Some(more) = command.get_after_help() {
        write!(page, "{more}.\n\n").unwrap();
    }
    for command in visible(command) {
        describe(page, command);
    }
}

/// Lists arguments and options; empty where there is none.
fn table<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let rows: String = args
        .filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()))
        .map(|arg| format!("| `{}` | {} |\n", name(arg), meaning(arg)))
        .collect();
    if rows.is_empty() {
        return rows;
    }
    format!("| option | meaning |\n|---|---|\n{rows}")
}

fn name(arg: &Arg) -> String {
    let value = arg
        .get_action()
        .takes_values()
        .then(|| {
            let names = arg.get_value_names().unwrap_or_default();
            names.iter().map(|name| format!("<{name}>")).collect()
        })
        .map(|names: Vec<String>| names.join(" "));
    match (arg.get_short(), arg.get_long(), value) {
        (None, None, value) => value.unwrap_or_default(),
        (short, long, value) => {
            let short = short.map(|short| format!("-{short}"));
            let long = long.map(|long| format!("--{long}"));
            let flags: Vec<String> = short.into_iter().chain(long).collect();
            let flags = flags.join(", ");
            value.map_or_else(|| flags.clone(), |value| format!("{flags} {value}"))
        }
    }
}

fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|_| arg.get_action().takes_values())
        .map(|value| match value.get_help() {
            Some(help) => format!(
                "`{}` ({})",
                value.get_name(),
                lower_first(&help.to_string())
            ),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !values.is_empty() {
        write!(text, ": {}", values.join(", ")).unwrap();
    }
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .filter(|_| arg.get_action().takes_values())
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    if !defaults.is_empty() {
        write!(text, "; default {}", defaults.join(", ")).unwrap();
    }
    text.replace('|', "\\|")
}

#[test]
fn generated_references_are_up_to_date() {
    assert_up_to_date("cli.md", &page());
}

#[test]
fn every_command_and_option_is_on_the_page() {
    let page = page();
    for (heading, options) in [
        ("## `the-loop poll start`", ["--once", "--max-retries <N>"]),
        (
            "## `the-loop sessions close`",
            ["<WORK_ITEM>", "--kill-tmux"],
        ),
        ("## `the-loop events`", ["--type <PATTERN>", "-f, --follow"]),
    ] {
        let section = page.split(heading).nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        for option in options {
            assert!(section.contains(&format!("| `{option}` |")), "{section}");
        }
    }
    assert!(!page.contains("--detached"), "hidden options stay hidden");
}
