//! gh's `hosts.yml`, the last place a token is looked for.
//!
//! Newer versions of gh keep tokens in the system's keyring; the file has one only after
//! `gh auth login --insecure-storage`, or from an older gh.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde::Deserialize;

use super::auth::{Origin, Token};

#[derive(Deserialize)]
struct Host {
    oauth_token: Option<String>,
    user: Option<String>,
    #[serde(default)]
    users: BTreeMap<String, Option<User>>,
}

#[derive(Deserialize)]
struct User {
    oauth_token: Option<String>,
}

/// Reads the token of `host`, or says in a few words why there is none.
pub(super) async fn token(
    environment: &(dyn Fn(&str) -> Option<String> + Send + Sync),
    host: &str,
) -> Result<Token, String> {
    let path = path(environment).ok_or("hosts.yml (no home directory)")?;
    let shown = path.display().to_string();
    let content = tokio::fs::read_to_string(&path)
        .await
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("{shown} (does not exist)"),
            kind => format!("{shown} ({kind})"),
        })?;
    // The parser's own message could quote the line, and with it the token.
    let found = parse(&content, host).map_err(|problem| format!("{shown} ({problem})"))?;
    Token::new(&found, Origin::HostsFile(path)).ok_or_else(|| format!("{shown} (no token in it)"))
}

fn path(environment: &(dyn Fn(&str) -> Option<String> + Send + Sync)) -> Option<PathBuf> {
    let dir = |name| {
        environment(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let folder = dir("GH_CONFIG_DIR")
        .or_else(|| dir("XDG_CONFIG_HOME").map(|config| config.join("gh")))
        .or_else(|| dir("HOME").map(|home| home.join(".config/gh")))?;
    Some(folder.join("hosts.yml"))
}

fn parse(content: &str, host: &str) -> Result<String, &'static str> {
    let hosts: BTreeMap<String, Option<Host>> =
        serde_yaml::from_str(content).map_err(|_| "not in gh's format")?;
    let entry = hosts
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(host))
        .and_then(|(_, entry)| entry)
        .ok_or("nothing about this host")?;
    let of_user = entry
        .user
        .and_then(|user| entry.users.get(&user)?.as_ref()?.oauth_token.clone());
    entry.oauth_token.or(of_user).ok_or("no token in it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_the_host_is_found_in_both_formats() {
        let file = "
github.com:
    user: ada
    oauth_token: one
    users: {ada: {oauth_token: two}}
GHE.example:
    user: bob
    users:
        ada: {oauth_token: three}
        bob: {oauth_token: four}
        eve:
keyring.example:
    user: ada
    users: {ada: }
empty.example:
";
        assert_eq!(parse(file, "github.com").unwrap(), "one");
        assert_eq!(parse(file, "ghe.example").unwrap(), "four");
        assert_eq!(parse(file, "keyring.example"), Err("no token in it"));
        assert_eq!(parse(file, "empty.example"), Err("nothing about this host"));
        assert_eq!(parse(file, "other.example"), Err("nothing about this host"));
    }

    #[test]
    fn a_broken_file_is_reported_without_its_content() {
        assert_eq!(
            parse("github.com: [secret", "github.com"),
            Err("not in gh's format")
        );
    }
}
