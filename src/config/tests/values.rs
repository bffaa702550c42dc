//! What the values become.

use super::*;
use crate::model::ControlCommand;

#[test]
fn an_empty_file_means_the_defaults_and_so_does_none() {
    let place = Place::new();
    let without = Loaded::defaults(&place.env()).unwrap();
    for text in [
        "",
        "# nothing\n",
        "---\n",
        "{}",
        "\u{feff}",
        "routing:\npolling:\n",
    ] {
        let loaded = place.load(text).unwrap();
        assert_eq!(loaded.config, without.config, "{text:?}");
    }
    let config = without.config;
    assert_eq!(config.state.root, place.path("home/.the-loop"));
    assert_eq!(
        config.event_log.path,
        place.path("home/.the-loop/logs/events.jsonl")
    );
    assert_eq!(config.routing.default_harness.0, "claude");
    assert_eq!(config.routing.spawn_on_unmatched, SpawnPolicy::Never);
    assert_eq!(
        config.routing.control.keywords[&ControlCommand::Start],
        "the-loop start"
    );
    assert_eq!(config.integrations.github.host, "github.com");
    assert_eq!(
        config.integrations.github.token_env,
        ["GH_TOKEN", "GITHUB_TOKEN"]
    );
    let claude = &config.harnesses[&config.routing.default_harness];
    assert_eq!(claude.command, "claude");
    assert_eq!(claude.session_args, ["--session-id", "{sessionId}"]);
    assert_eq!(
        claude.resume_args.as_deref().unwrap(),
        ["--resume", "{sessionId}"]
    );
    assert_eq!(
        (claude.ready_delay, claude.submit_gap),
        (Duration::from_secs(3), Duration::from_millis(150))
    );
}

#[test]
fn paths_are_relative_to_the_file_and_home_expands() {
    let place = Place::new();
    place.write("etc/p.md", "$text");
    let path = place.write(
        "etc/loop.yaml",
        "\
state: {root: data}
routing: {spawnWorkdir: ~, promptTemplate: ./p.md, tmux: {binary: ../bin/tmux}}
harnesses: {agent: {command: ~/bin/agent}, plain: {command: agent}}
eventLog: {path: ~/events.jsonl}
",
    );

    let config = Config::load(Some(&path), &place.env()).unwrap().config;

    assert_eq!(config.state.root, place.path("etc/data"));
    // A lone ~ is YAML's null, so the default holds: the file's folder.
    assert_eq!(config.routing.spawn_workdir, place.path("etc"));
    let template = config.routing.prompt_template.unwrap();
    assert_eq!(template.path, place.path("etc/p.md"));
    assert_eq!(
        config.routing.tmux.binary,
        Some(place.path("etc/../bin/tmux"))
    );
    let command = |name: &str| {
        config.harnesses[&HarnessName(name.to_owned())]
            .command
            .clone()
    };
    assert_eq!(
        PathBuf::from(command("agent")),
        place.path("home/bin/agent")
    );
    assert_eq!(command("plain"), "agent");
    assert_eq!(config.event_log.path, place.path("home/events.jsonl"));
}

#[test]
fn the_entry_of_claude_overrides_what_it_names() {
    let place = Place::new();
    let config = place
        .load(
            "\
harnesses:
  claude: {args: [--verbose], env: {LANG: C}, passEnv: [ANTHROPIC_API_KEY], resumeArgs: []}
  script: {command: ./agent.sh, readyDelaySeconds: 0.5, submitGapMilliseconds: 20}
routing:
  defaultHarness: script
  harnessArgs: {claude: [--model, x]}
",
        )
        .unwrap()
        .config;

    let claude = &config.harnesses[&HarnessName("claude".to_owned())];
    assert_eq!(claude.command, "claude");
    assert_eq!(claude.args, ["--verbose", "--model", "x"]);
    assert_eq!(claude.resume_args, Some(Vec::new()));
    assert_eq!(claude.env["LANG"], EnvValue::Value("C".to_owned()));
    assert_eq!(claude.env["ANTHROPIC_API_KEY"], EnvValue::FromEnvironment);
    let script = &config.harnesses[&config.routing.default_harness];
    assert_eq!(script.resume_args, None);
    assert_eq!(
        (script.ready_delay, script.submit_gap),
        (Duration::from_millis(500), Duration::from_millis(20))
    );
}

#[test]
fn repositories_belong_to_the_configured_host() {
    let place = Place::new();
    let config = place
        .load("polling: {sources: [{repos: [o/r, ghe.example/o/s]}]}\nintegrations: {github: {apiUrl: 'https://ghe.example/api/v3/'}}")
        .unwrap()
        .config;

    let repos: Vec<String> = config.polling.sources[0]
        .repos
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(repos, ["ghe.example/o/r", "ghe.example/o/s"]);
    assert_eq!(
        config.integrations.github.api_url,
        "https://ghe.example/api/v3"
    );
    assert_eq!(
        config.integrations.github.token_env[0],
        "GH_ENTERPRISE_TOKEN"
    );
}

#[test]
fn an_address_that_speaks_for_another_host_gets_no_token_that_is_kept_for_that_host() {
    let place = Place::new();
    let local = place
        .load("polling: {sources: [{repos: [o/r]}]}\nintegrations: {github: {apiUrl: 'http://127.0.0.1:4567', host: GitHub.com}}")
        .unwrap();
    assert_eq!(local.config.integrations.github.host, "github.com");
    assert!(local.config.integrations.github.token_env.is_empty());
    assert!(
        !warnings(&local)
            .iter()
            .any(|text| text.contains("tokenEnv"))
    );

    let proxy = "apiUrl: 'https://proxy.example/gh', host: github.com";
    let warned = place
        .load(format!("integrations: {{github: {{{proxy}}}}}"))
        .unwrap();
    assert!(warned.config.integrations.github.token_env.is_empty());
    assert!(
        warnings(&warned)
            .iter()
            .any(|text| text.contains("integrations.github.host: the address in apiUrl"))
    );

    let named = place
        .load(format!(
            "integrations: {{github: {{{proxy}, tokenEnv: [PROXY_TOKEN]}}}}"
        ))
        .unwrap();
    assert_eq!(named.config.integrations.github.token_env, ["PROXY_TOKEN"]);
    assert!(!warnings(&named).iter().any(|text| text.contains("apiUrl")));

    let own = place
        .load("integrations: {github: {apiUrl: 'https://api.github.com', host: github.com}}")
        .unwrap();
    assert_eq!(own.config.integrations.github.token_env[0], "GH_TOKEN");
}

#[test]
fn a_host_that_refs_cannot_carry_is_refused() {
    let place = Place::new();
    for host in [
        "https://github.com",
        "github.com/octo",
        "api.github.com",
        "x y",
    ] {
        let problems = place.problems(format!("integrations: {{github: {{host: '{host}'}}}}"));
        assert!(
            problems[0].contains("integrations.github.host: "),
            "{problems:?}"
        );
    }
}

#[test]
fn nobody_authorised_warns_and_nothing_to_poll_refuses() {
    let place = Place::new();
    let loaded = place.load("").unwrap();
    assert_eq!(warnings(&loaded).len(), 1, "{:?}", warnings(&loaded));
    assert!(warnings(&loaded)[0].contains("routing.authorizedUsers: is empty: nobody may"));
    let refusal = loaded.require_sources().unwrap_err().to_string();
    assert!(
        refusal.starts_with("nothing to poll: ~/.the-loop/cli-config.yaml has no polling.sources"),
        "{refusal}"
    );

    let loaded = place.load(MINIMAL).unwrap();
    assert_eq!(warnings(&loaded), Vec::<String>::new());
    assert!(loaded.require_sources().is_ok());
    assert_eq!(
        loaded.config.polling.sources[0].label,
        "the-loop: auto-execute"
    );
}

#[test]
fn agents_that_would_work_in_the_state_folder_are_warned_of() {
    let place = Place::new();
    fs::create_dir_all(place.path("home/.the-loop/work")).unwrap();
    std::os::unix::fs::symlink(place.path("home/.the-loop"), place.path("link")).unwrap();
    let warned = |rest: &str| {
        let routing = format!("routing: {{authorizedUsers: [o], spawnOnUnmatched: labeled{rest}}}");
        let loaded = place.load(routing).unwrap();
        warnings(&loaded)
    };
    for (workdir, how) in [
        ("", "is the state folder"),
        (", spawnWorkdir: .", "is the state folder"),
        (", spawnWorkdir: ../../link", "is the state folder"),
        (", spawnWorkdir: work", "lies in the state folder"),
        (", spawnWorkdir: '~'", "contains the state folder"),
    ] {
        let said = warned(workdir);
        assert_eq!(said.len(), 1, "{workdir}: {said:?}");
        assert!(said[0].contains("routing.spawnWorkdir: "), "{said:?}");
        assert!(said[0].contains(how), "{workdir}: {said:?}");
    }
    assert_eq!(warned(", spawnWorkdir: ../../work"), Vec::<String>::new());
    let nobody_works = place.load("routing: {authorizedUsers: [o]}").unwrap();
    assert_eq!(warnings(&nobody_works), Vec::<String>::new());
}

#[test]
fn a_readable_file_with_secrets_warns_and_no_output_shows_them() {
    let place = Place::new();
    let text =
        "routing: {authorizedUsers: [o]}\nharnesses: {claude: {env: {API_KEY: hunter2, LANG: C}}}";
    let loaded = place.load(text).unwrap();
    assert_eq!(warnings(&loaded), Vec::<String>::new());

    let path = place.path("home/.the-loop/cli-config.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o646)).unwrap();
    let loaded = Config::load(None, &place.env()).unwrap();

    let warnings = warnings(&loaded);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("everybody on this machine can write"),
        "{warnings:?}"
    );
    assert!(
        warnings[1].contains("harnesses.claude.env: holds what looks like a secret"),
        "{warnings:?}"
    );
    for text in [
        loaded.show(),
        loaded.show_json().to_string(),
        format!("{loaded:?}"),
        loaded.check_report(),
    ] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn show_tells_where_each_value_comes_from() {
    let place = Place::new();
    let mut loaded = place
        .load("polling:\n  maxRetries: 5\nrouting:\n  authorizedUsers: [octocat, '@hubot[bot]']\n  harnessArgs: {claude: [-v]}\n")
        .unwrap();
    loaded.config.polling.interval = Duration::from_secs(5);
    loaded
        .origins
        .set("polling.intervalSeconds", Origin::Flag("--interval"));

    let shown: Vec<Vec<String>> = loaded
        .show()
        .lines()
        .map(|line| {
            line.split("   ")
                .map(|cell| cell.trim().to_owned())
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect();

    assert_eq!(shown[0], ["# ~/.the-loop/cli-config.yaml (the default)"]);
    for row in [
        ["polling.intervalSeconds", "5", "--interval"],
        ["polling.maxRetries", "5", "~/.the-loop/cli-config.yaml:2"],
        [
            "routing.authorizedUsers",
            "[octocat, \"hubot[bot]\"]",
            "~/.the-loop/cli-config.yaml:4",
        ],
        [
            "harnesses.claude.args",
            "[-v]",
            "~/.the-loop/cli-config.yaml:5",
        ],
        ["routing.tmux.socketName", "(none)", "default"],
        ["routing.spawnOnUnmatched", "never", "default"],
        [
            "routing.control.keywords.start",
            "the-loop start",
            "default",
        ],
    ] {
        assert!(
            shown.iter().any(|shown| *shown == row),
            "{row:?} in {shown:#?}"
        );
    }
    let json = loaded.show_json();
    let retries = json["settings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["key"] == "polling.maxRetries")
        .unwrap();
    assert_eq!(
        *retries,
        serde_json::json!({"key": "polling.maxRetries", "value": 5, "origin": "file", "line": 2})
    );
}

#[test]
fn check_sums_up_what_is_set_up() {
    let place = Place::new();
    assert_eq!(
        place.load(MINIMAL).unwrap().check_report(),
        "~/.the-loop/cli-config.yaml is valid (the default): 1 repository, acting for @octocat\n"
    );
}

#[test]
fn check_has_a_json_twin() {
    let place = Place::new();
    let wrong = place.load("zzzz: 1").unwrap_err().json();
    assert_eq!(
        wrong["problems"],
        serde_json::json!([{
            "place": {"line": 1, "column": 1},
            "key": "zzzz",
            "message": "unknown key; `the-loop config schema` lists every key",
        }])
    );
    assert_eq!(wrong["warnings"][0]["key"], "routing.authorizedUsers");
    let file = place.path("home/.the-loop/cli-config.yaml");
    assert_eq!(wrong["file"], file.to_str().unwrap());
    let fine = place.load("").unwrap().check_json();
    assert_eq!(
        (&fine["valid"], fine["warnings"].as_array().map(Vec::len)),
        (&true.into(), Some(1))
    );
    assert_eq!(fine["file"], wrong["file"]);
}
