//! The generated pages of `docs/`: written anew on request, compared otherwise.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns a file of `docs/`.
pub(crate) fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name)
}

/// Fails where a page of `docs/` is not what the code says; with `UPDATE_REFERENCES` set it writes
/// the page first.
pub(crate) fn assert_up_to_date(name: &str, generated: &str) {
    let page = docs(name);
    if std::env::var_os("UPDATE_REFERENCES").is_some() {
        fs::write(&page, generated).unwrap();
    }
    let found = fs::read_to_string(&page).unwrap_or_default();
    assert!(
        found == generated,
        "docs/{name} is not up to date: run UPDATE_REFERENCES=1 cargo test references"
    );
}

/// Puts generated text between two marks of a page.
pub(crate) fn spliced(page: &str, [begin, end]: [&str; 2], generated: &str) -> String {
    let (before, rest) = page.split_once(begin).expect("the page has the begin mark");
    let (_, after) = rest.split_once(end).expect("the page has the end mark");
    format!("{before}{begin}\n\n{generated}\n{end}{after}")
}

/// Writes a sentence as it stands within another.
pub(crate) fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}
