//! Every requirement in `specs/` names the tests that prove it, and every named test exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::text::text_files;
use super::tokens::{Token, attributes, tokens};
use super::tree::{all_files, shown};
use super::{none, root};

/// How a requirement without a test must say so.
const NONE_YET: &str = "none yet (";

#[derive(Debug, PartialEq, Eq)]
struct Requirement {
    id: String,
    line: usize,
    text: String,
    tests: Option<String>,
}

/// Reads the requirements of one page: a heading that is an id, a sentence, a `Tests:` line.
fn requirements(page: &str) -> Vec<Requirement> {
    let mut found: Vec<Requirement> = Vec::new();
    let mut inside = false;
    for (number, line) in page.lines().enumerate() {
        if let Some(heading) = line.strip_prefix('#') {
            let title = heading.trim_start_matches('#').trim();
            inside = is_id(title);
            if inside {
                found.push(Requirement {
                    id: title.to_owned(),
                    line: number + 1,
                    text: String::new(),
                    tests: None,
                });
            }
            continue;
        }
        let Some(requirement) = found.last_mut().filter(|_| inside) else {
            continue;
        };
        match (&mut requirement.tests, line.strip_prefix("Tests:")) {
            (None, Some(tests)) => requirement.tests = Some(tests.trim().to_owned()),
            (Some(tests), None) if !line.trim().is_empty() => {
                tests.push(' ');
                tests.push_str(line.trim());
            }
            (None, None) => {
                requirement.text.push_str(line);
                requirement.text.push(' ');
            }
            _ => {}
        }
    }
    found
}

/// Ids are `AC1` or `POLL-3`.
fn is_id(title: &str) -> bool {
    let letters = title.bytes().take_while(u8::is_ascii_uppercase).count();
    let rest = &title[letters..];
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    letters >= 2 && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Finds the names of the functions that a test runner runs.
fn test_names(tokens: &[Token]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.ident() != Some("fn") {
            continue;
        }
        let is_test = attributes(tokens, at).iter().any(|attribute| {
            attribute
                .iter()
                .filter_map(Token::ident)
                .any(|word| word == "test")
        });
        if let (true, Some(name)) = (is_test, tokens.get(at + 1).and_then(Token::ident)) {
            found.push(name.to_owned());
        }
    }
    found
}

fn problems(requirement: &Requirement, existing: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    if !requirement.text.contains("SHALL") {
        found.push("says nothing that SHALL hold".to_owned());
    }
    match requirement.tests.as_deref() {
        None | Some("") => found.push("has no `Tests:` line".to_owned()),
        Some(tests) if tests.starts_with(NONE_YET) => {
            if tests.len() < NONE_YET.len() + 4 {
                found.push("does not say why it has no test".to_owned());
            }
        }
        Some(tests) => {
            for name in tests.split(',').map(|name| name.trim().trim_matches('`')) {
                if !existing.contains(name) {
                    found.push(format!("names a test that does not exist: {name}"));
                }
            }
        }
    }
    found
}

#[test]
fn every_requirement_is_proved_by_tests_that_exist() {
    let existing: BTreeSet<_> = all_files(root())
        .iter()
        .flat_map(|file| test_names(&tokens(&fs::read_to_string(file).unwrap())))
        .collect();
    let mut found = Vec::new();
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    let (mut all, mut unproved) = (0, 0);
    for entry in fs::read_dir(root().join("specs")).unwrap() {
        let file = entry.unwrap().path();
        let page = fs::read_to_string(&file).unwrap();
        for requirement in requirements(&page) {
            let place = format!("{}:{}", shown(root(), &file), requirement.line);
            all += 1;
            unproved += usize::from(
                requirement
                    .tests
                    .as_deref()
                    .is_some_and(|tests| tests.starts_with(NONE_YET)),
            );
            for problem in problems(&requirement, &existing) {
                found.push(format!("{place}: {} {problem}", requirement.id));
            }
            if let Some(first) = places.insert(requirement.id.clone(), place.clone()) {
                found.push(format!("{place}: {} stands at {first} too", requirement.id));
            }
        }
    }
    for number in 1..=12 {
        let id = format!("AC{number}");
        if !places.contains_key(&id) {
            found.push(format!("{id} is missing"));
        }
    }
    println!("{all} requirements, {unproved} without a test yet");
    none("a requirement that nothing proves", &found);
}

/// Finds the ids that comments and documents speak of, with their lines; `known` are the prefixes.
fn named_ids(text: &str, is_rust: bool, known: &BTreeSet<String>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let spoken = if is_rust {
            match line.trim_start().strip_prefix("//") {
                Some(comment) => comment,
                None => continue,
            }
        } else {
            line
        };
        let words = spoken.split(|char: char| !char.is_ascii_alphanumeric() && char != '-');
        let ids = words.filter(|word| is_id(word) && known.contains(prefix(word)));
        found.extend(ids.map(|id| (number + 1, id.to_owned())));
    }
    found
}

/// `POLL` of `POLL-3`.
fn prefix(id: &str) -> &str {
    id.trim_end_matches(|char: char| char.is_ascii_digit())
        .trim_end_matches('-')
}

fn all_ids() -> BTreeSet<String> {
    let pages = fs::read_dir(root().join("specs")).unwrap();
    pages
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .flat_map(|page| requirements(&page))
        .map(|requirement| requirement.id)
        .collect()
}

#[test]
fn every_requirement_that_is_spoken_of_exists() {
    let ids = all_ids();
    let known: BTreeSet<String> = ids.iter().map(|id| prefix(id).to_owned()).collect();
    let mut found = Vec::new();
    for file in text_files(root()) {
        let extension = file.extension().unwrap_or_default();
        if extension != "rs" && extension != "md" {
            continue;
        }
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        let named = named_ids(&text, extension == "rs", &known).into_iter();
        let unknown = named.filter(|(_, id)| !ids.contains(id));
        found.extend(unknown.map(|(line, id)| format!("{}:{line}: {id}", shown(root(), &file))));
    }
    none("a requirement that nobody wrote", &found);
}

#[test]
fn a_planted_unknown_requirement_is_found() {
    let known = BTreeSet::from(["AC", "POLL"].map(str::to_owned));
    let source = "/// AC1, POLL-99: it holds.\nfn f() { \"POLL-7\" }\n// UTF-8, and AC13\n";
    let named = |text, is_rust| named_ids(text, is_rust, &known);
    let (one, two) = ("AC1".to_owned(), "POLL-99".to_owned());
    assert_eq!(
        named(source, true),
        [(1, one), (1, two), (3, "AC13".to_owned())]
    );
    assert_eq!(named("(`POLL-1` to `POLL-6`)", false).len(), 2);
}

#[test]
fn a_planted_unproved_requirement_is_found() {
    let page = "# Poll\n\n## POLL-1\n\nWHEN it runs THE SYSTEM SHALL poll.\n\nTests: one_test,\n`another`\n\n\
                ### POLL-2\nIt polls.\nTests: none yet ()\n## Notes\nTests: free text\n## AC1\nIt SHALL hold.\n";
    let found = requirements(page);
    let ids: Vec<_> = found.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["POLL-1", "POLL-2", "AC1"]);

    let existing = BTreeSet::from(["one_test".to_owned()]);
    assert_eq!(
        problems(&found[0], &existing),
        ["names a test that does not exist: another"]
    );
    assert_eq!(problems(&found[1], &existing).len(), 2);
    assert_eq!(problems(&found[2], &existing), ["has no `Tests:` line"]);
}

#[test]
fn test_functions_are_told_from_helpers() {
    let source = "#[test] fn a() {} fn b() {} #[tokio::test(start_paused = true)]\nasync fn c() {} #[must_use] fn d() {}";
    assert_eq!(test_names(&tokens(source)), ["a", "c"]);
}
