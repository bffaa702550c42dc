//! The arrows between modules: `docs/architecture.md` draws them, this table is their law.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::tokens::{Token, attributes, only_for_tests, path_separator, tokens};
use super::tree::{Build, compiled, shown};
use super::{none, root};

/// Open to all, importing nothing above.
const GROUND: &[&str] = &[
    "model",
    "clock",
    "config",
    "eventlog",
    "planted",
    "process",
    "telemetry",
];

/// The arrows as the design draws them; whoever may import a module may import what that one may.
const DRAWN: &[(&str, &[&str])] = &[
    ("github", &[]),
    ("routing", &[]),
    ("store", &[]),
    ("runner", &[]),
    ("harness", &[]),
    ("workspace", &[]),
    ("host", &[]),
    ("ingress", &["routing", "github", "store"]),
    (
        "dispatch",
        &["routing", "store", "runner", "harness", "workspace"],
    ),
    ("daemon", &["ingress", "dispatch"]),
    ("demo", &[]),
    ("cli", &["demo", "daemon"]),
];

/// One use of another module.
#[derive(Debug, PartialEq, Eq)]
struct Reference {
    module: String,
    line: usize,
}

/// Finds the top-level modules that a file names, in `use` trees and in inline paths.
///
/// `depth` says how many modules lie between the file and the crate's root. What stands in
/// `#[cfg(test)]` modules is left out: tests may reach for the demo's GitHub.
fn references(tokens: &[Token], depth: usize) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut braces = 0;
    let mut inline: Vec<(usize, Build)> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        if token.is('{') {
            braces += 1;
        } else if token.is('}') {
            braces -= 1;
            inline.retain(|(opened, _)| *opened <= braces);
        }
        let names_module = tokens
            .get(at + 1)
            .is_some_and(|next| next.ident().is_some());
        if token.ident() == Some("mod")
            && names_module
            && tokens.get(at + 2).is_some_and(|next| next.is('{'))
        {
            let build = if only_for_tests(&attributes(tokens, at)) {
                Build::Tests
            } else {
                Build::Product
            };
            inline.push((braces + 1, build));
        }
        let in_tests = inline.iter().any(|(_, build)| *build == Build::Tests);
        let starts = at < 2 || !path_separator(tokens, at - 2);
        if in_tests || !starts {
            at += 1;
            continue;
        }
        if let Some(after) = to_crate_root(tokens, at, depth + inline.len()) {
            found.extend(heads(tokens, after));
        }
        at += 1;
    }
    found
}

/// Returns where a path goes on after its part that leads to the crate's root, if it has one.
fn to_crate_root(tokens: &[Token], mut at: usize, mut levels: usize) -> Option<usize> {
    match tokens[at].ident()? {
        "crate" | "the_loop" => levels = 0,
        "super" => levels = levels.checked_sub(1)?,
        _ => return None,
    }
    at += 1;
    while path_separator(tokens, at) && tokens.get(at + 2)?.ident() == Some("super") {
        levels = levels.checked_sub(1)?;
        at += 3;
    }
    (levels == 0 && path_separator(tokens, at)).then_some(at + 2)
}

/// Reads the first names of what stands after `crate::`: one, or those of a group.
fn heads(tokens: &[Token], at: usize) -> Vec<Reference> {
    let Some(first) = tokens.get(at) else {
        return Vec::new();
    };
    let reference = |token: &Token, module: &str| Reference {
        module: module.to_owned(),
        line: token.line,
    };
    if let Some(module) = first.ident() {
        return vec![reference(first, module)];
    }
    if first.is('*') {
        return vec![reference(first, "*")];
    }
    let mut found = Vec::new();
    let mut depth = 0;
    let mut expects_head = false;
    for token in &tokens[at..] {
        if token.is('{') {
            depth += 1;
            expects_head = depth == 1;
        } else if token.is('}') {
            depth -= 1;
            if depth == 0 {
                break;
            }
        } else if token.is(',') {
            expects_head = depth == 1;
        } else if expects_head {
            expects_head = false;
            found.push(reference(token, token.ident().unwrap_or("*")));
        }
    }
    found
}

fn may_import(from: &str, to: &str) -> Result<(), String> {
    if from == to {
        return Ok(());
    }
    if GROUND.contains(&from) {
        return if GROUND.contains(&to) {
            Ok(())
        } else {
            Err(format!("the ground floor ({from}) imports {to}"))
        };
    }
    if drawn_from(from).is_none() {
        return Err(format!("{from} has no place in the table of tests/guards"));
    }
    if GROUND.contains(&to) || leads(from, to) {
        Ok(())
    } else {
        Err(format!("{from} must not import {to}"))
    }
}

fn drawn_from(module: &str) -> Option<&'static [&'static str]> {
    DRAWN
        .iter()
        .find(|(from, _)| *from == module)
        .map(|(_, to)| *to)
}

/// Tells whether the drawn arrows lead from one module to another, over others too.
fn leads(from: &str, to: &str) -> bool {
    drawn_from(from)
        .unwrap_or_default()
        .iter()
        .any(|next| *next == to || leads(next, to))
}

fn module_and_depth(file: &Path) -> (String, usize) {
    let parts: Vec<_> = file
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    let depth = parts.len() - usize::from(parts.last().is_some_and(|last| last == "mod"));
    (parts[0].clone(), depth)
}

/// A module and one that it imports, with the places where it does.
type Arrows = BTreeMap<(String, String), Vec<String>>;

fn arrows() -> Arrows {
    let source = root().join("src");
    let mut found = Arrows::new();
    for (file, build) in compiled(root()) {
        let Ok(inside) = file.strip_prefix(&source) else {
            continue;
        };
        if build == Build::Tests || inside == Path::new("lib.rs") || inside == Path::new("main.rs")
        {
            continue;
        }
        let (module, depth) = module_and_depth(inside);
        for reference in references(&tokens(&fs::read_to_string(&file).unwrap()), depth) {
            found
                .entry((module.clone(), reference.module))
                .or_default()
                .push(format!("{}:{}", shown(root(), &file), reference.line));
        }
    }
    found
}

/// Finds a way from a module back to itself.
fn cycle(arrows: &BTreeSet<(String, String)>) -> Option<Vec<String>> {
    fn visit(
        module: &str,
        arrows: &BTreeSet<(String, String)>,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> bool {
        if way.iter().any(|passed| passed == module) {
            way.push(module.to_owned());
            return true;
        }
        if !done.insert(module.to_owned()) {
            return false;
        }
        way.push(module.to_owned());
        for (_, to) in arrows
            .iter()
            .filter(|(from, to)| from == module && to != from)
        {
            if visit(to, arrows, way, done) {
                return true;
            }
        }
        way.pop();
        false
    }
    let mut done = BTreeSet::new();
    arrows.iter().find_map(|(from, _)| {
        let mut way = Vec::new();
        visit(from, arrows, &mut way, &mut done).then_some(way)
    })
}

#[test]
fn no_module_imports_what_the_design_forbids() {
    let problems: Vec<_> = arrows()
        .iter()
        .filter_map(|((from, to), places)| {
            let problem = may_import(from, to).err()?;
            Some(format!("{problem}: {}", places.join(", ")))
        })
        .collect();
    none("an arrow that the design does not draw", &problems);
}

#[test]
fn modules_do_not_import_each_other_in_a_circle() {
    assert_eq!(cycle(&arrows().into_keys().collect()), None);
}

#[test]
fn a_planted_arrow_is_found_in_every_form() {
    let source = r#"
        use crate::store::Inbox;
        use crate::{model::{Event, Login}, runner};
        use super::super::cli;
        use super::sibling;
        fn f() { let x = the_loop::github::GitHub::new(); "crate::nothing"; pub(crate) }
        // crate::nothing
        mod inner { use super::super::super::daemon; use super::super::sibling; }
        #[cfg(test)]
        mod tests { use crate::demo; }
        use crate::*;
    "#;
    let found: Vec<_> = references(&tokens(source), 2)
        .into_iter()
        .map(|reference| (reference.module, reference.line))
        .collect();
    let expected = [
        ("store", 2),
        ("model", 3),
        ("runner", 3),
        ("cli", 4),
        ("github", 6),
        ("daemon", 8),
        ("*", 11),
    ];
    assert_eq!(
        found,
        expected.map(|(module, line)| (module.to_owned(), line))
    );
}

#[test]
fn the_table_allows_and_forbids_as_the_design_says() {
    let forbidden = [
        ("ingress", "dispatch"),
        ("dispatch", "ingress"),
        ("routing", "store"),
        ("runner", "store"),
        ("host", "store"),
        ("host", "github"),
        ("model", "store"),
        ("eventlog", "dispatch"),
        ("daemon", "cli"),
        ("demo", "cli"),
        ("daemon", "demo"),
        ("demo", "daemon"),
        ("dispatch", "github"),
        ("cli", "host"),
        ("dispatch", "host"),
        ("helpers", "model"),
        ("store", "*"),
    ];
    for (from, to) in forbidden {
        assert!(may_import(from, to).is_err(), "{from} -> {to}");
    }
    for (from, to) in [
        ("cli", "demo"),
        ("cli", "runner"),
        ("dispatch", "runner"),
        ("store", "model"),
        ("config", "model"),
    ] {
        assert_eq!(may_import(from, to), Ok(()), "{from} -> {to}");
    }
}

#[test]
fn a_planted_circle_is_found() {
    let arrows = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(from, to)| ((*from).to_owned(), (*to).to_owned()))
            .collect::<BTreeSet<_>>()
    };
    assert!(cycle(&arrows(&[("a", "b"), ("b", "c"), ("c", "a")])).is_some());
    assert!(cycle(&arrows(&[("a", "b"), ("b", "c"), ("a", "c"), ("a", "a")])).is_none());
}
