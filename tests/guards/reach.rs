//! How far the program reaches: one module talks to the network, and few know of secrets.

use std::fs;

use super::tokens::{Token, tokens};
use super::tree::{Build, compiled, shown};
use super::{none, root};

/// Crates and types with which something is said over a network.
const NETWORK: &[&str] = &[
    "axum",
    "hyper",
    "octocrab",
    "reqwest",
    "TcpListener",
    "TcpSocket",
    "TcpStream",
    "UdpSocket",
];

/// The API client, and the local GitHub of demo and tests.
const TALKERS: &[&str] = &["src/github/", "src/demo/github/"];

/// The API client finds the credentials, and the configuration keeps them out of sight.
const CONFIDANTS: &[&str] = &["src/github/", "src/config/"];

fn is_below(file: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| file.starts_with(folder))
}

fn talks(token: &Token) -> bool {
    token.ident().is_some_and(|name| NETWORK.contains(&name))
}

/// Finds the names of variables that hold a credential, such as `GH_TOKEN`.
fn names_a_secret(token: &Token) -> bool {
    let is_name = |word: &str| {
        ["_TOKEN", "_SECRET", "_PASSWORD", "_API_KEY"]
            .iter()
            .any(|end| word.ends_with(end))
    };
    token.text().is_some_and(|text| {
        text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_')
            .any(is_name)
    })
}

fn outside(folders: &[&str], wrong: fn(&Token) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (file, build) in compiled(root()) {
        let name = shown(root(), &file);
        if build != Build::Product || is_below(&name, folders) {
            continue;
        }
        let source = tokens(&fs::read_to_string(&file).unwrap());
        let lines = source.iter().filter(|token| wrong(token));
        found.extend(lines.map(|token| format!("{name}:{}", token.line)));
    }
    found
}

#[test]
fn only_the_api_client_talks_to_the_network() {
    none("a word to the network", &outside(TALKERS, talks));
}

#[test]
fn only_the_api_client_and_the_configuration_know_of_credentials() {
    none("a credential", &outside(CONFIDANTS, names_a_secret));
}

#[test]
fn planted_reaches_are_found() {
    let found = |source: &str, wrong: fn(&Token) -> bool| {
        tokens(source).iter().filter(|token| wrong(token)).count()
    };
    assert_eq!(found("use std::net::TcpStream; reqwest::get(x)", talks), 2);
    assert_eq!(found("use tokio::net::UnixStream; // reqwest", talks), 0);
    let secrets = "env(\"GH_TOKEN\"); env(\"SLACK_SECRET\"); say(\"claim_token = $1\")";
    assert_eq!(found(secrets, names_a_secret), 2);
    assert!(is_below("src/github/auth.rs", TALKERS));
    assert!(!is_below("src/runner/real.rs", TALKERS));
}
