//! The dependency policy of `.ci/deny.toml`, enforced from cargo's own metadata.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::tokens::{Token, tokens};
use super::tree::rust_files;
use super::{none, root};

/// Returns the quoted words between `key = [` and the closing bracket.
fn list(policy: &str, key: &str) -> Vec<String> {
    let start = policy.find(&format!("\n{key} = [")).unwrap();
    let body = &policy[start..];
    let end = body.find(']').unwrap_or(body.len());
    body[..end]
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Tells whether an SPDX expression can be satisfied with the allowed licences.
fn licensed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut at = 0;
    let satisfied = any_of(&words, &mut at, allowed);
    satisfied && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut satisfied = all_of(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        satisfied |= all_of(words, at, allowed);
    }
    satisfied
}

fn all_of(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut satisfied = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        satisfied &= one(words, at, allowed);
    }
    satisfied
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    if words.get(*at) == Some(&"(") {
        *at += 1;
        let satisfied = any_of(words, at, allowed);
        *at += 1;
        return satisfied;
    }
    let mut name = words.get(*at).copied().unwrap_or_default().to_owned();
    *at += 1;
    if words.get(*at) == Some(&"WITH") {
        name = format!("{name} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    allowed.contains(&name)
}

fn judge(package: &Value, policy: &str) -> Vec<String> {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let mut found = Vec::new();
    if !licensed(text("license"), &list(policy, "allow")) {
        found.push(format!("{}: licence {:?}", text("name"), text("license")));
    }
    if list(policy, "deny")
        .iter()
        .any(|banned| banned == text("name"))
    {
        found.push(format!("{}: banned", text("name")));
    }
    let source = text("source");
    let from_allowed = list(policy, "allow-registry")
        .iter()
        .any(|registry| source == format!("registry+{registry}"));
    if !source.is_empty() && !from_allowed {
        found.push(format!("{}: comes from {source}", text("name")));
    }
    found
}

#[expect(
    clippy::disallowed_methods,
    reason = "asks cargo, which runs this test, about the package"
)]
fn metadata() -> Value {
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(rustc.stdout).unwrap();
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", host])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the names by which the code knows the crates of a section of `Cargo.toml`.
fn declared(manifest: &str, section: &str) -> Vec<String> {
    manifest
        .split(&format!("\n[{section}]\n"))
        .nth(1)
        .unwrap_or_default()
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name.replace('-', "_"))
        .collect()
}

fn words_of(folders: &[&str]) -> BTreeSet<String> {
    folders
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
        .flat_map(|file| tokens(&fs::read_to_string(file).unwrap()))
        .filter_map(|token: Token| token.ident().map(str::to_owned))
        .collect()
}

#[test]
fn every_dependency_follows_the_policy() {
    let policy = fs::read_to_string(root().join(".ci/deny.toml")).unwrap();
    let metadata = metadata();
    let built: BTreeSet<_> = metadata["resolve"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|node| node["id"].as_str())
        .collect();
    let problems: Vec<_> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| package["id"].as_str().is_some_and(|id| built.contains(id)))
        .flat_map(|package| judge(package, &policy))
        .collect();
    none("a dependency against .ci/deny.toml", &problems);
}

#[test]
fn no_dependency_is_unused() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut unused = Vec::new();
    for (section, folders) in [
        ("dependencies", &["src"][..]),
        ("dev-dependencies", &["src", "tests", "benches"][..]),
    ] {
        let words = words_of(folders);
        unused.extend(
            declared(&manifest, section)
                .into_iter()
                .filter(|name| !words.contains(name)),
        );
    }
    none("a dependency that no code names", &unused);
}

#[test]
fn the_licence_language_is_understood() {
    let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    for good in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0 OR MIT",
        "ISC AND (GPL-3.0 OR MIT)",
        "Apache-2.0 WITH LLVM-exception OR X",
    ] {
        assert!(licensed(good, &allowed), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR ISC) AND X",
        "Apache-2.0",
    ] {
        assert!(!licensed(bad, &allowed), "{bad}");
    }
}

#[test]
fn a_planted_bad_dependency_is_found() {
    let policy = "\nallow = [\n    \"MIT\",\n]\ndeny = [\n    { crate = \"bad\" },\n]\nallow-registry = [\"https://r\"]\n";
    let package =
        serde_json::json!({"name": "bad", "license": "GPL-3.0", "source": "git+https://g"});
    assert_eq!(judge(&package, policy).len(), 3);
    let package =
        serde_json::json!({"name": "good", "license": "MIT", "source": "registry+https://r"});
    assert!(judge(&package, policy).is_empty());
    let own = serde_json::json!({"name": "own", "license": "MIT", "source": null});
    assert!(judge(&own, policy).is_empty());
}
