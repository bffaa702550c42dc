use proptest::prelude::*;

use super::*;
use crate::config::schema::ConfigFile;
use crate::config::tree;

fn problems(text: &str) -> Vec<String> {
    let (tree, broken) = tree::parse(text);
    assert_eq!(broken, []);
    let (value, problems) = walk(&tree.unwrap());
    let decoded: Result<ConfigFile, _> = serde_json::from_value(value);
    assert!(decoded.is_ok(), "what the walk returns can be decoded");
    problems.iter().map(ToString::to_string).collect()
}

fn problem(text: &str) -> String {
    let found = problems(text);
    assert_eq!(found.len(), 1, "{text:?} gave {found:?}");
    found.concat()
}

#[test]
fn each_difference_is_named_with_what_was_expected_and_found() {
    for (text, message) in [
        (
            "polling: {intervalSeconds: 1m}",
            "1:28 polling.intervalSeconds: expected a whole number of seconds ≥ 1, found \"1m\"",
        ),
        (
            "polling: {intervalSeconds: 0}",
            "1:28 polling.intervalSeconds: expected a whole number of seconds ≥ 1, found 0",
        ),
        (
            "polling: {maxRetries: 1.5}",
            "1:23 polling.maxRetries: expected a whole number ≥ 1, found 1.5",
        ),
        (
            "polling: {maxRetries: 5000000000}",
            "1:23 polling.maxRetries: expected a whole number ≥ 1, found 5000000000",
        ),
        (
            "routing: {tmux: {resumeProbeSeconds: .inf}}",
            "1:38 routing.tmux.resumeProbeSeconds: expected a number of seconds from 0 to 600, found \".inf\"",
        ),
        (
            "routing: 5",
            "1:10 routing: expected a map of keys, found 5",
        ),
        ("- a", "1:1 expected a map of keys, found a list"),
        ("hello", "1:1 expected a map of keys, found \"hello\""),
        (
            "eventLog: {enabled: 'false'}",
            "1:21 eventLog.enabled: expected true or false, found \"false\"; write it without quotes",
        ),
        (
            "eventLog: {enabled: yes}",
            "1:21 eventLog.enabled: expected true or false, found \"yes\"",
        ),
        (
            "routing: {authorizedUsers: octocat}",
            "1:28 routing.authorizedUsers: expected a list, found \"octocat\"",
        ),
        (
            "routing: {authorizedUsers: [12]}",
            "1:29 routing.authorizedUsers[0]: expected text, found 12; put it in quotes",
        ),
        (
            "routing: {authorizedUsers: [~]}",
            "1:29 routing.authorizedUsers[0]: expected text, found nothing",
        ),
        (
            "routing: {spawnOnUnmatched: labelled}",
            "1:29 routing.spawnOnUnmatched: expected never, labeled or always, found \"labelled\"; did you mean labeled?",
        ),
        (
            "polling: {sources: [{provider: gitlab}]}",
            "1:32 polling.sources[0].provider: expected github, found \"gitlab\"; did you mean github?",
        ),
        (
            "harnesses: {x: {env: {API_TOKEN: 123456}}}",
            "1:34 harnesses.x.env.API_TOKEN: expected text, found a number; put it in quotes",
        ),
        (
            "routing: {defaultHarness: \"a\\0b\"}",
            "1:27 routing.defaultHarness: holds a control character; delete it",
        ),
    ] {
        assert_eq!(problem(text), message, "{text}");
    }
}

#[test]
fn an_unknown_key_gets_the_nearest_valid_name() {
    for (text, message) in [
        (
            "routing: {authorisedUsers: [a]}",
            "1:11 routing.authorisedUsers: unknown key; did you mean authorizedUsers?",
        ),
        (
            "authorizedUsers: [a]",
            "1:1 authorizedUsers: unknown key here; did you mean routing.authorizedUsers?",
        ),
        (
            "routing: {frobnicate: 1}",
            "1:11 routing.frobnicate: unknown key; `the-loop config schema` lists every key",
        ),
        (
            "polling: {sources: [{repo: o/r}]}",
            "1:22 polling.sources[0].repo: unknown key; did you mean repos?",
        ),
        (
            "harnesses: {x: {comand: y}}",
            "1:17 harnesses.x.comand: unknown key; did you mean command?",
        ),
    ] {
        assert_eq!(problem(text), message, "{text}");
    }
}

#[test]
fn retired_keys_have_answers_of_their_own() {
    for (text, message) in [
        (
            "routing:\n    ghBinary: gh",
            "2:5 routing.ghBinary: removed; GitHub is reached through its API now: delete the line",
        ),
        (
            "routing: {runner: tmux}",
            "1:11 routing.runner: removed; every session runs in tmux: delete the line",
        ),
        (
            "polling: {sources: [{ghBinary: gh}]}",
            "1:22 polling.sources[0].ghBinary: removed; GitHub is reached through its API now: delete the line",
        ),
        (
            "webhooks:\n  ghWebhook: {port: 1}",
            "1:1 webhooks: not available in this version: delete the section",
        ),
        (
            "routing: {enabled: true}",
            "1:11 routing.enabled: not available in this version: delete the line",
        ),
        (
            "integrations: {github: {api: {baseUrl: x}}}",
            "1:25 integrations.github.api: removed; write integrations.github.apiUrl and integrations.github.tokenEnv instead",
        ),
    ] {
        assert_eq!(problem(text), message, "{text}");
    }
}

#[test]
fn a_key_without_a_value_is_a_key_that_is_not_given() {
    assert_eq!(
        problems("routing:\npolling: {sources: ~}\nharnesses: {claude: }\n"),
        Vec::<String>::new()
    );
}

#[test]
fn every_problem_is_found_not_only_the_first() {
    let found = problems(
        "polling: {intervalSeconds: x, sources: [1, {repos: {}}]}\nrouting: {tmux: [], foo_bar: 1}\nzzz: 1\n",
    );
    assert_eq!(found.len(), 6, "{found:?}");
}

/// Values that are sometimes right: known keys in known places, with any kind of value below.
fn any_file() -> impl Strategy<Value = Value> {
    let mut names: Vec<String> = schema::keys()
        .into_iter()
        .filter_map(|key| key.path.rsplit('.').next().map(str::to_owned))
        .collect();
    names.push("nonsense".to_owned());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        (-2i64..70_000).prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (0u32..100).prop_map(|n| (f64::from(n) / 4.0).into()),
        prop_oneof![
            Just("never"),
            Just("github"),
            Just("cli"),
            Just("o/r"),
            Just(""),
            Just("true")
        ]
        .prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Into::into),
            4 => prop::collection::vec((prop::sample::select(names.clone()), inner), 0..8)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_cannot_be_decoded_is_reported_and_what_is_not_reported_is_kept(file in any_file()) {
        let text = serde_yaml::to_string(&file).unwrap();
        let (tree, broken) = tree::parse(&text);
        prop_assert_eq!(broken, vec![]);
        let (value, problems) = walk(&tree.unwrap());

        prop_assert!(serde_json::from_value::<ConfigFile>(value.clone()).is_ok(), "{}", value);
        if problems.is_empty() {
            let plain = without_empty(&file);
            prop_assert!(serde_json::from_value::<ConfigFile>(plain.clone()).is_ok(), "{}", plain);
            prop_assert_eq!(without_empty(&value), plain);
        }
    }
}

/// Nothing, an empty map and an absent key are the same.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), without_empty(value)))
            .filter(|(_, value)| *value != json!({}))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}
