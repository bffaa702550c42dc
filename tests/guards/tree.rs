//! Every source file is compiled, none is too long, and no test is switched off.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::tokens::{Token, attributes, only_for_tests, tokens};
use super::{none, root};

const LONGEST: usize = 500;

/// What a file is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    Product,
    Tests,
}

/// One `mod name;`.
#[derive(Debug, PartialEq, Eq)]
struct Declared {
    /// The inline modules around it, then its own name.
    path: Vec<String>,
    /// What `#[path = "…"]` says instead.
    elsewhere: Option<String>,
    build: Build,
}

/// Finds the `mod name;` lines of a file, also those inside inline modules.
fn declared(tokens: &[Token]) -> Vec<Declared> {
    let mut found = Vec::new();
    let mut braces = 0;
    let mut around: Vec<(usize, String, Build)> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.is('{') {
            braces += 1;
        } else if token.is('}') {
            braces -= 1;
            around.retain(|(depth, _, _)| *depth <= braces);
        }
        if token.ident() != Some("mod") {
            continue;
        }
        let (Some(name), Some(after)) = (
            tokens.get(at + 1).and_then(Token::ident),
            tokens.get(at + 2),
        ) else {
            continue;
        };
        let attributes = attributes(tokens, at);
        let in_tests = around.iter().any(|(_, _, build)| *build == Build::Tests);
        let build = if in_tests || only_for_tests(&attributes) {
            Build::Tests
        } else {
            Build::Product
        };
        if after.is('{') {
            around.push((braces + 1, name.to_owned(), build));
        } else if after.is(';') {
            let mut path: Vec<_> = around.iter().map(|(_, name, _)| name.clone()).collect();
            path.push(name.to_owned());
            let elsewhere = attributes
                .iter()
                .filter(|attribute| attribute.get(1).and_then(Token::ident) == Some("path"))
                .find_map(|attribute| attribute.iter().find_map(Token::text))
                .map(str::to_owned);
            found.push(Declared {
                path,
                elsewhere,
                build,
            });
        }
    }
    found
}

fn walk(file: &Path, build: Build, is_root: bool, reached: &mut BTreeMap<PathBuf, Build>) {
    let Ok(source) = fs::read_to_string(file) else {
        return;
    };
    let known = reached.get(file);
    if known == Some(&build) || known == Some(&Build::Product) {
        return;
    }
    reached.insert(file.to_owned(), build);
    let here = file.parent().unwrap();
    let owns_folder = is_root || file.file_name().is_some_and(|name| name == "mod.rs");
    let folder = if owns_folder {
        here.to_owned()
    } else {
        file.with_extension("")
    };
    for child in declared(&tokens(&source)) {
        let build = if build == Build::Tests {
            build
        } else {
            child.build
        };
        if let Some(elsewhere) = &child.elsewhere {
            let target = here.join(elsewhere);
            walk(
                &target.canonicalize().unwrap_or(target),
                build,
                false,
                reached,
            );
            continue;
        }
        let base = child
            .path
            .iter()
            .fold(folder.clone(), |at, part| at.join(part));
        walk(&base.with_extension("rs"), build, false, reached);
        walk(&base.join("mod.rs"), build, false, reached);
    }
}

/// Lists every Rust file below a folder.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return found;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns every file that some target compiles, and for what.
pub(crate) fn compiled(root: &Path) -> BTreeMap<PathBuf, Build> {
    let mut reached = BTreeMap::new();
    walk(&root.join("src/lib.rs"), Build::Product, true, &mut reached);
    walk(
        &root.join("src/main.rs"),
        Build::Product,
        true,
        &mut reached,
    );
    for folder in ["tests", "benches", "examples"] {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path.join("main.rs"), Build::Tests, true, &mut reached);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                walk(&path, Build::Tests, true, &mut reached);
            }
        }
    }
    reached
}

/// Returns every Rust file of the package.
pub(crate) fn all_files(root: &Path) -> Vec<PathBuf> {
    ["src", "tests", "benches", "examples"]
        .iter()
        .flat_map(|folder| rust_files(&root.join(folder)))
        .collect()
}

fn forgotten(root: &Path) -> Vec<String> {
    let compiled = compiled(root);
    all_files(root)
        .into_iter()
        .filter(|file| !compiled.contains_key(file))
        .map(|file| format!("{}: no `mod` leads to it", shown(root, &file)))
        .collect()
}

/// Returns a path as people write it, from the package's folder.
pub(crate) fn shown(root: &Path, file: &Path) -> String {
    file.strip_prefix(root)
        .unwrap_or(file)
        .display()
        .to_string()
}

fn switched_off(tokens: &[Token]) -> Vec<usize> {
    tokens
        .windows(3)
        .filter(|next| next[0].is('#') && next[1].is('[') && next[2].ident() == Some("ignore"))
        .map(|next| next[0].line)
        .collect()
}

#[test]
fn every_source_file_is_compiled() {
    none("a file that nothing compiles", &forgotten(root()));
}

#[test]
fn no_source_file_is_longer_than_500_lines() {
    let long: Vec<_> = all_files(root())
        .iter()
        .filter_map(|file| {
            let lines = fs::read_to_string(file).unwrap().lines().count();
            (lines > LONGEST).then(|| format!("{}: {lines} lines", shown(root(), file)))
        })
        .collect();
    none("a file that is more than one idea", &long);
}

#[test]
fn no_test_is_switched_off() {
    let mut found = Vec::new();
    for file in all_files(root()) {
        for line in switched_off(&tokens(&fs::read_to_string(&file).unwrap())) {
            found.push(format!("{}:{line}", shown(root(), &file)));
        }
    }
    none("a test that does not run", &found);
}

#[test]
fn a_planted_ignore_is_found() {
    assert_eq!(
        switched_off(&tokens("#[test]\n#[ignore = \"later\"]\nfn f() {}")),
        [2]
    );
    assert!(switched_off(&tokens("// #[ignore]")).is_empty());
}

#[test]
fn a_planted_forgotten_file_is_found() {
    let package = tempfile::tempdir().unwrap();
    let at = package.path();
    let put = |name: &str, source: &str| {
        let file = at.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, source).unwrap();
    };
    put("src/lib.rs", "pub mod a;\n#[cfg(test)]\nmod tests;");
    put("src/tests.rs", "");
    put(
        "src/a/mod.rs",
        "mod b; mod inner { mod deep; }\n// mod lost;",
    );
    put("src/a/b.rs", "mod c;");
    put("src/a/b/c.rs", "");
    put("src/a/inner/deep.rs", "");
    put("src/a/lost.rs", "");
    put("tests/one.rs", "mod support;");
    put("tests/support/mod.rs", "");
    put(
        "tests/two/main.rs",
        "#[path = \"../support/mod.rs\"]\nmod support; mod more;",
    );
    put("tests/two/more.rs", "");
    put("tests/two/lost.rs", "");

    assert_eq!(
        forgotten(at),
        [
            "src/a/lost.rs: no `mod` leads to it",
            "tests/two/lost.rs: no `mod` leads to it"
        ]
    );
    assert_eq!(compiled(at)[&at.join("src/tests.rs")], Build::Tests);
    assert_eq!(compiled(at)[&at.join("src/a/b/c.rs")], Build::Product);
}
