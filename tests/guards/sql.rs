//! The store speaks the SQL that `SQLite` and `PostgreSQL` have in common.

use std::fs;
use std::path::Path;

use super::tokens::{Token, tokens};
use super::tree::{Build, compiled, shown};
use super::{none, root};

/// What only `SQLite` understands, or understands otherwise than `PostgreSQL`.
const ONLY_SQLITE: &[&str] = &[
    "INSERT OR",
    "REPLACE INTO",
    "UPDATE OR",
    "PRAGMA",
    "VACUUM",
    "BEGIN IMMEDIATE",
    "AUTOINCREMENT",
    "WITHOUT ROWID",
    "ROWID",
    "IFNULL(",
    "IIF(",
    "GLOB",
    "REGEXP",
    "COLLATE",
    "STRFTIME(",
    "DATETIME(",
    "JULIANDAY(",
    "UNIXEPOCH(",
    "GROUP_CONCAT(",
    "JSON_",
    "TYPEOF(",
    "PRINTF(",
    "INSTR(",
    "HEX(",
    "RANDOMBLOB(",
    "CHANGES(",
    "LAST_INSERT_ROWID(",
    "INDEXED BY",
    "LIMIT -1",
    "==",
    "`",
    "?",
];

/// What concerns the database file itself; another database has no such thing.
const OF_THE_FILE: &[&str] = &["BEGIN IMMEDIATE", "VACUUM INTO $1", "PRAGMA quick_check(1)"];

/// Words by which a text is known for a part of a statement.
const STATEMENT: &[&str] = &[
    "SELECT", "UPDATE", "INSERT", "DELETE", "WHERE", "FROM", "AND", "ORDER BY", "CREATE", "PRAGMA",
    "VACUUM", "BEGIN", "REPLACE",
];

/// Tells whether `word` stands in `text` for itself, not inside a longer one.
fn has(text: &str, word: &str) -> bool {
    let is_letter = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let opens = word.starts_with(is_letter) && before.is_some_and(is_letter);
        let goes_on = word.ends_with(char::is_alphabetic) && after.is_some_and(is_letter);
        !opens && !goes_on
    })
}

/// Tells whether `MAX` or `MIN` compares two values, which elsewhere is `GREATEST` and `LEAST`.
fn compares_two(sql: &str) -> bool {
    ["MAX(", "MIN("].iter().any(|call| {
        sql.match_indices(call).any(|(at, _)| {
            let mut depth = 0;
            for char in sql[at + call.len()..].chars() {
                match char {
                    '(' => depth += 1,
                    ')' if depth == 0 => return false,
                    ')' => depth -= 1,
                    ',' if depth == 0 => return true,
                    _ => {}
                }
            }
            false
        })
    })
}

fn problems(sql: &str) -> Vec<String> {
    let mut found: Vec<String> = ONLY_SQLITE
        .iter()
        .filter(|word| has(&sql.to_ascii_uppercase(), word))
        .map(|word| (*word).to_owned())
        .collect();
    if compares_two(sql) {
        found.push("MAX or MIN of two values".to_owned());
    }
    found
}

/// Returns the texts of a source that are statements or parts of one.
fn statements(source: &str) -> Vec<(usize, String)> {
    tokens(source)
        .iter()
        .filter_map(|token| Some((token.line, Token::text(token)?.to_owned())))
        .filter(|(_, text)| STATEMENT.iter().any(|word| has(text, word)))
        .filter(|(_, text)| !OF_THE_FILE.contains(&text.as_str()))
        .collect()
}

fn without_comments(script: &str) -> String {
    let lines = script.lines().map(|line| line.split("--").next());
    lines.flatten().collect::<Vec<_>>().join("\n")
}

fn scripts(folder: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

#[test]
fn the_store_speaks_the_sql_that_both_databases_run() {
    let store = root().join("src/store");
    let mut found = Vec::new();
    let mut read = 0;
    for (file, build) in compiled(root()) {
        if build == Build::Tests || !file.starts_with(&store) {
            continue;
        }
        for (line, sql) in statements(&fs::read_to_string(&file).unwrap()) {
            read += 1;
            for problem in problems(&sql) {
                found.push(format!("{}:{line}: {problem}", shown(root(), &file)));
            }
        }
    }
    for script in scripts(&store.join("migrations")) {
        let sql = without_comments(&fs::read_to_string(&script).unwrap());
        for problem in problems(&sql) {
            // How numbers are never given twice is the one thing that each database says its own way.
            if problem != "AUTOINCREMENT" {
                found.push(format!("{}: {problem}", shown(root(), &script)));
            }
        }
    }
    assert!(read > 100, "only {read} statements were found");
    none("SQL that PostgreSQL does not run", &found);
}

#[test]
fn planted_dialect_is_found() {
    for planted in [
        r#"query("INSERT OR IGNORE INTO events (key) VALUES ($1)")"#,
        r#"query("SELECT IFNULL(a, 0) FROM t")"#,
        r#"query("SELECT id FROM t WHERE name GLOB $1")"#,
        r#"query("SELECT id FROM t WHERE id = ?1")"#,
        r#"query("UPDATE t SET at = MAX(at, $1)")"#,
        r#"query(concat!("SELECT id FROM t", " WHERE a == b AND c"))"#,
        r#"query("PRAGMA user_version")"#,
    ] {
        let found: Vec<_> = statements(planted)
            .iter()
            .flat_map(|(_, sql)| problems(sql))
            .collect();
        assert_eq!(found.len(), 1, "{planted}: {found:?}");
    }
    for innocent in [
        r#"query("SELECT MAX(at), MIN(COALESCE(a, b)) FROM t")"#,
        r#"note("what is this?")"#,
        r#"query("SELECT globe FROM t ORDER BY id LIMIT $1")"#,
        r#"begin("BEGIN IMMEDIATE")"#,
    ] {
        for (_, sql) in statements(innocent) {
            assert_eq!(problems(&sql), [] as [String; 0], "{innocent}");
        }
    }
}
