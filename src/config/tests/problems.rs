//! What is refused.

use super::*;

#[test]
fn three_problems_are_shown_at_once_with_line_and_column() {
    let place = Place::new();
    let text = "\
polling:
  intervalSeconds: \"1m\"
  sources:
    - repos: [octo/app]
routing:
  authorisedUsers:
    - octocat
  ghBinary: gh
";

    let error = place.load(text).unwrap_err().to_string();

    assert_eq!(
        error,
        "3 problems in ~/.the-loop/cli-config.yaml\n\n  \
           2:20   polling.intervalSeconds   expected a whole number of seconds ≥ 1, found \"1m\"\n  \
           6:3    routing.authorisedUsers   unknown key; did you mean authorizedUsers?\n  \
           8:3    routing.ghBinary          removed; GitHub is reached through its API now: delete the line"
    );
}

#[test]
fn impossible_values_are_refused_each_with_its_place() {
    let place = Place::new();
    for (text, message) in [
        (
            "polling: {sources: [{repos: []}]}",
            "1:22 polling.sources[0].repos: names no repository; write for example [octo/app]",
        ),
        (
            "polling: {sources: [{}]}",
            "1:21 polling.sources[0].repos: names no repository; write for example [octo/app]",
        ),
        (
            "polling: {sources: [{repos: [octo]}]}",
            "1:30 polling.sources[0].repos[0]: expected owner/repo, found \"octo\"",
        ),
        (
            "polling: {sources: [{repos: [o/r]}, {repos: [O/R]}]}",
            "1:46 polling.sources[1].repos[0]: O/R is watched twice, first in line 1; delete one",
        ),
        (
            "polling: {sources: [{repos: [ghe.example/o/r]}]}",
            "1:30 polling.sources[0].repos[0]: is on ghe.example, but integrations.github.apiUrl speaks to github.com",
        ),
        (
            "polling: {sources: [{repos: [o/r], label: ''}]}",
            "1:43 polling.sources[0].label: is empty; write a value or delete the line",
        ),
        (
            "polling: {sources: [{repos: [o/r], label: 'a,b'}]}",
            "1:43 polling.sources[0].label: GitHub cannot be asked for a label with a comma in it",
        ),
        (
            "polling: {sources: [{repos: [o/r], monitor: {issues: false, pullRequests: false}}]}",
            "1:36 polling.sources[0].monitor: watches neither issues nor pull requests; set one to true or delete the source",
        ),
        (
            "routing: {autoExecuteLabel: ' '}",
            "1:29 routing.autoExecuteLabel: is empty; write a value or delete the line",
        ),
        (
            "routing: {authorizedUsers: ['a b']}",
            "1:29 routing.authorizedUsers[0]: \"a b\" is not a GitHub login",
        ),
        (
            "routing: {defaultHarness: claud}",
            "1:27 routing.defaultHarness: no harness \"claud\" in harnesses; did you mean claude?",
        ),
        (
            "routing: {harnessArgs: {cursor: []}}",
            "1:25 routing.harnessArgs.cursor: no harness \"cursor\" in harnesses; defined are claude",
        ),
        (
            "routing: {spawnWorkdir: ''}",
            "1:25 routing.spawnWorkdir: is empty; write a path or delete the line",
        ),
        (
            "routing: {spawnWorkdir: ~other/x}",
            "1:25 routing.spawnWorkdir: only ~ and ~/… expand; write the whole path",
        ),
        (
            "routing: {control: {keywords: {stop: The-Loop  START}}}",
            "1:38 routing.control.keywords.stop: is the same as the word of start",
        ),
        (
            "routing: {tmux: {socketName: a/b}}",
            "1:30 routing.tmux.socketName: expected a name of letters, digits, -, _ and ., beginning with a letter or digit",
        ),
        (
            "harnesses: {x: {}}",
            "1:13 harnesses.x.command: is missing; name the program to run",
        ),
        (
            "harnesses: {x: ~}",
            "1:13 harnesses.x.command: is missing; name the program to run",
        ),
        (
            "harnesses: {a b: {command: x}}",
            "1:13 harnesses.\"a b\": a harness is named with letters, digits, - and _ only",
        ),
        (
            "harnesses: {x: {command: y, env: {A-B: c}}}",
            "1:40 harnesses.x.env.A-B: is not the name of an environment variable",
        ),
        (
            "harnesses: {x: {command: y, env: {TMUX: c}}}",
            "1:41 harnesses.x.env.TMUX: is set by the-loop itself; delete the line",
        ),
        (
            "harnesses: {x: {command: y, env: {A: c}, passEnv: [A]}}",
            "1:52 harnesses.x.passEnv[0]: is given twice, in env or in passEnv; delete one",
        ),
        (
            "harnesses: {x: {command: a, env: {THE_LOOP_OWNER: b}}}",
            "1:51 harnesses.x.env.THE_LOOP_OWNER: is set by the-loop itself; delete the line",
        ),
        (
            "eventLog: {path: /}",
            "1:18 eventLog.path: is a folder; name a file",
        ),
        (
            "state: {root: cli-config.yaml}",
            "1:15 state.root: is not a folder",
        ),
        (
            "integrations: {github: {apiUrl: 'http://ghe.example'}}",
            "1:33 integrations.github.apiUrl: expected https://: over http:// anybody on the way could read the token",
        ),
        (
            "integrations: {github: {tokenEnv: [ghp-x]}}",
            "1:36 integrations.github.tokenEnv[0]: is not the name of an environment variable (the token itself does not belong here)",
        ),
        (
            "integrations: {github: {tokenEnv: []}}",
            "1:25 integrations.github.tokenEnv: names no variable; delete the line to use gh's",
        ),
    ] {
        assert_eq!(place.problems(text), [message], "{text}");
    }
}

#[test]
fn a_template_or_folder_that_is_not_there_is_a_problem() {
    let place = Place::new();
    let found = place.problems(
        "routing: {promptTemplate: no.md, spawnPromptTemplate: ., spawnWorkdir: nowhere}",
    );
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].contains("routing.promptTemplate: cannot read"),
        "{found:?}"
    );
}

#[test]
fn whoever_starts_no_agent_can_do_without_what_the_file_names() {
    let place = Place::new();
    place.write("home/.the-loop/event.md", "For $nobody:");
    place.write(
        "home/.the-loop/cli-config.yaml",
        "routing: {promptTemplate: event.md, spawnPromptTemplate: no.md, spawnWorkdir: nowhere}",
    );
    let loaded = Config::load_for(Purpose::Look, None, &place.env()).unwrap();
    let keys = ["promptTemplate", "spawnPromptTemplate", "spawnWorkdir"];
    for key in keys {
        let warned = |warning: &Problem| warning.to_string().contains(key);
        assert!(loaded.warnings.iter().any(warned), "{key}");
    }
}

#[test]
fn every_unknown_placeholder_of_a_template_is_a_problem_beside_the_others() {
    let place = Place::new();
    let template = place.write(
        "home/.the-loop/event.md",
        "For $actor:\n$texts and $nothing",
    );
    let shown = template.display();
    let found = place.problems("routing: {promptTemplate: event.md, defaultHarness: none}");
    assert_eq!(
        found,
        [
            format!(
                "1:27 routing.promptTemplate: {shown}:2:1: $texts is no placeholder; did you mean $text?"
            ),
            format!(
                "1:27 routing.promptTemplate: {shown}:2:12: $nothing is no placeholder; write $$ for a dollar sign"
            ),
            "1:53 routing.defaultHarness: no harness \"none\" in harnesses; defined are claude"
                .to_owned(),
        ]
    );
}

#[test]
fn a_wrong_value_does_not_hide_others_nor_breed_new_ones() {
    let place = Place::new();
    let found = place.problems(
        "\
polling:
  sources:
    - 5
    - repos: [7, o/r, o/r]
harnesses:
  agent: nonsense
routing:
  defaultHarness: agent
  defaultHarness: agent
",
    );
    assert_eq!(
        found,
        [
            "3:7 polling.sources[0]: expected a map of keys, found 5",
            "4:15 polling.sources[1].repos[0]: expected text, found 7; put it in quotes",
            "4:23 polling.sources[1].repos[2]: o/r is watched twice, first in line 4; delete one",
            "6:10 harnesses.agent: expected a map of keys, found \"nonsense\"",
            "9:3 routing.defaultHarness: given twice, first in line 8",
        ]
    );
}

#[test]
fn broken_files_are_refused_with_a_place() {
    let place = Place::new();
    for (text, begins) in [
        (&b"polling:\n\tintervalSeconds: 5\n"[..], "2:"),
        (b"polling: {intervalSeconds: 5\n", "2:"),
        (b"state: {}\nstate: {}\n", "2:1 state: given twice"),
        (
            b"polling: {}\n---\nrouting: {}\n",
            "2:1 a second document begins here",
        ),
        (b"polling: {}\n# caf\xe9\n", "2:6 not UTF-8"),
        (b"\xff\xfep\0o\0", "1:1 not UTF-8"),
    ] {
        let found = place.problems(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(begins), "{found:?}");
    }
    let large = vec![b'#'; 2 * 1024 * 1024];
    assert!(
        place
            .load(large)
            .unwrap_err()
            .to_string()
            .contains("larger than 1 MiB")
    );
}
