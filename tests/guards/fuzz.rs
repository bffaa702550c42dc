//! The fuzz targets: nothing here compiles them, so that what they call is looked for in the sources.

use std::fs;
use std::path::Path;

use super::tokens::tokens;
use super::tree::rust_files;
use super::{none, root};

/// The path that a target calls: its modules, its function.
fn called(source: &str) -> Option<(Vec<String>, String)> {
    let tokens = tokens(source);
    let begin = tokens
        .iter()
        .position(|token| token.ident() == Some("the_loop"))?;
    let path = tokens[begin + 1..]
        .iter()
        .take_while(|token| token.ident().is_some() || token.is(':'))
        .filter_map(|token| token.ident().map(str::to_owned));
    let mut path: Vec<String> = path.collect();
    let function = path.pop()?;
    Some((path, function))
}

/// What is wrong with one target.
fn problems(root: &Path, name: &str, source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_there = called(source).is_some_and(|(modules, function)| {
        let file = root.join("src").join(modules.join("/"));
        let text = fs::read_to_string(file.with_extension("rs")).unwrap_or_default();
        text.contains(&format!("pub fn {function}("))
    });
    if !is_there {
        found.push(format!("{name} calls no property"));
    }
    let corpus = fs::read_dir(root.join("fuzz/corpus").join(name));
    if corpus.map_or(0, Iterator::count) == 0 {
        found.push(format!("{name} has no corpus"));
    }
    let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
    if !manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")) {
        found.push(format!("{name} is not built"));
    }
    found
}

#[test]
fn every_fuzz_target_calls_a_property_and_has_a_corpus() {
    let targets = rust_files(&root().join("fuzz/fuzz_targets"));
    assert!(!targets.is_empty());
    let wrong: Vec<String> = targets
        .iter()
        .flat_map(|file| {
            let name = file.file_stem().unwrap().to_string_lossy();
            problems(root(), &name, &fs::read_to_string(file).unwrap())
        })
        .collect();
    none("a fuzz target that is of no use", &wrong);
}

#[test]
fn a_fuzz_target_that_calls_nothing_is_found() {
    let lost = "fuzz_target!(|bytes: &[u8]| the_loop::model::property::lost(bytes));";
    assert_eq!(problems(root(), "text", lost), ["text calls no property"]);
    assert_eq!(problems(root(), "lost", "").len(), 3);
}
