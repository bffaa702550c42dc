//! What no text of the repository may say: paths of one machine, hosts of one network.

use std::fs;
use std::path::{Path, PathBuf};

use super::tree::shown;
use super::{none, root};

/// Names that stand for anybody in examples.
const ANYBODY: &[&str] = &[
    "ada", "octocat", "mallory", "you", "me", "u", "user", "user2",
];

/// Parts are joined here so that this list does not find itself.
const FORBIDDEN: &[&str] = &[
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/tmp/", "wt/"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("registry.", "npmjs.org"),
    concat!("pypi", ".org"),
    concat!("deb.", "debian.org"),
];

/// Returns every text file of the repository.
pub(crate) fn text_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if matches!(name.as_ref(), "target" | ".git" | "Cargo.lock") {
            continue;
        }
        if path.is_dir() {
            found.extend(text_files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn private(line: &str) -> Option<String> {
    if let Some(word) = FORBIDDEN.iter().find(|word| line.contains(**word)) {
        return Some((*word).to_owned());
    }
    for homes in [concat!("/ho", "me/"), concat!("/Us", "ers/")] {
        for (at, _) in line.match_indices(homes) {
            let rest = &line[at + homes.len()..];
            let end = rest
                .find(|char: char| !char.is_ascii_alphanumeric() && char != '-' && char != '_')
                .unwrap_or(rest.len());
            let name = &rest[..end];
            if !name.is_empty() && !ANYBODY.contains(&name) {
                return Some(format!("{homes}{name}"));
            }
        }
    }
    None
}

#[test]
fn no_file_names_one_machine_or_its_network() {
    let mut found = Vec::new();
    for file in text_files(root()) {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if let Some(what) = private(line) {
                found.push(format!("{}:{}: {what}", shown(root(), &file), number + 1));
            }
        }
    }
    none("a path or host that only one machine has", &found);
}

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    let mut found = Vec::new();
    for file in text_files(root()) {
        if file.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for target in links(&text) {
            let path = target.split('#').next().unwrap_or_default();
            let outside = path.contains("://") || path.is_empty();
            if !outside && !file.parent().unwrap().join(path).exists() {
                found.push(format!("{}: {target}", shown(root(), &file)));
            }
        }
    }
    none("a link to nothing", &found);
}

fn links(markdown: &str) -> Vec<&str> {
    markdown
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect()
}

#[test]
fn a_planted_private_path_is_found() {
    assert!(private(concat!("cd /ho", "me/somebody/src")).is_some());
    assert!(private(concat!("in /ro", "ot/.cargo")).is_some());
    assert!(private(concat!("https://index.", "crates.io/x")).is_some());
    assert!(private("/home/ada/.the-loop and ~/.the-loop").is_none());
    assert_eq!(
        links("see [a](b.md) and [c](d/e.md#f)"),
        ["b.md", "d/e.md#f"]
    );
}
