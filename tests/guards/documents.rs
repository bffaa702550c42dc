//! What the documents say of the code: paths that exist, reasons that are all explained.

use std::fs;

use the_loop::model::{DropReason, HoldReason};

use super::text::text_files;
use super::tree::shown;
use super::{none, root};

/// What may lie at the top of the repository.
const TOP: &[&str] = &[
    ".ci",
    ".git",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "benches",
    "docs",
    "fuzz",
    "specs",
    "src",
    "tests",
];

/// Finds the paths of sources that a text names in backticks.
fn named_paths(markdown: &str) -> Vec<&str> {
    let folders = ["src/", "tests/", "benches/", "specs/", "docs/", ".ci/"];
    markdown
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| folders.iter().any(|folder| word.starts_with(folder)))
        .filter(|word| !word.contains(char::is_whitespace))
        .map(|word| word.trim_end_matches("**"))
        .collect()
}

/// Finds what a text writes as "`src/file.rs`, `function`".
fn named_functions(markdown: &str) -> Vec<(&str, &str)> {
    let pieces: Vec<_> = markdown.split('`').collect();
    pieces
        .windows(3)
        .skip(1)
        .step_by(2)
        .filter(|next| next[0].ends_with(".rs") && next[1].split_whitespace().eq([","]))
        .map(|next| (next[0], next[2].rsplit("::").next().unwrap_or(next[2])))
        .collect()
}

/// Returns the first cells of the table below a heading.
fn first_cells<'a>(markdown: &'a str, heading: &str) -> Vec<&'a str> {
    let below = markdown.split(&format!("\n### {heading}\n")).nth(1);
    below
        .unwrap_or_default()
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect()
}

#[test]
fn every_path_and_function_in_the_documents_exists() {
    let mut found = Vec::new();
    for file in text_files(root()) {
        if file.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let here = shown(root(), &file);
        for path in named_paths(&text) {
            if !root().join(path).exists() {
                found.push(format!("{here}: {path}"));
            }
        }
        for (path, function) in named_functions(&text) {
            let source = fs::read_to_string(root().join(path)).unwrap_or_default();
            if ![format!("fn {function}("), format!("fn {function}<")]
                .iter()
                .any(|head| source.contains(head))
            {
                found.push(format!("{here}: {path}, {function}"));
            }
        }
    }
    none(
        "a path or function that a document names and nobody has",
        &found,
    );
}

#[test]
fn every_module_has_its_row_in_the_architecture() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let library = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let missing: Vec<_> = library
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .filter(|module| !page.contains(&format!("\n| `src/{module}")))
        .map(str::to_owned)
        .collect();
    none("a module that docs/architecture.md does not know", &missing);
}

#[test]
fn every_reason_for_a_drop_or_a_hold_says_what_to_do() {
    let page = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let drops: Vec<_> = DropReason::ALL.iter().map(|one| one.as_str()).collect();
    assert_eq!(first_cells(&page, "Dropped"), drops);
    let holds: Vec<_> = HoldReason::ALL.iter().map(|one| one.as_str()).collect();
    assert_eq!(first_cells(&page, "Held"), holds);
}

#[test]
fn nothing_stray_lies_at_the_top() {
    let ignored = fs::read_to_string(root().join(".gitignore")).unwrap();
    let ignored: Vec<_> = ignored.lines().map(|line| line.trim_matches('/')).collect();
    let stray: Vec<_> = fs::read_dir(root())
        .unwrap()
        .map(Result::unwrap)
        // Folders of editors are their owner's business.
        .filter(|entry| {
            !entry.file_name().to_string_lossy().starts_with('.') || entry.path().is_file()
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !TOP.contains(&name.as_str()) && !ignored.contains(&name.as_str()))
        .collect();
    none("a file that has no place at the top", &stray);
}

#[test]
fn planted_paths_and_rows_are_found() {
    assert_eq!(
        named_paths("see `src/lost.rs`, `make test`, `tests/it/`, `src/**` and `cargo run src/x`"),
        ["src/lost.rs", "tests/it/", "src/"]
    );
    assert_eq!(
        named_functions("`src/a.rs`, `one`, then `b` of `src/c.rs`,\n`T::two`; `src/d.rs` and `e`"),
        [("src/a.rs", "one"), ("src/c.rs", "two")]
    );
    let page = "\n### Held\n\ntext\n\n| reason | x |\n|---|---|\n| `one` | a |\n| `two` | b |\n\n### Next\n| `three` |\n";
    assert_eq!(first_cells(page, "Held"), ["one", "two"]);
}
