//! `integrations.github`: which GitHub is spoken to, and with whose token.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::harnesses::is_variable_name;
use super::key_path::KeyPath;
use super::show::Settings;
use crate::model::{DEFAULT_HOST, RepoRef};

/// Other services.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct IntegrationsFile {
    /// Which GitHub is spoken to, and with whose token.
    github: GitHubFile,
}

/// Which GitHub is spoken to, and with whose token.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct GitHubFile {
    /// The address of the REST API; for GitHub Enterprise Server `https://<host>/api/v3`.
    api_url: String,
    /// The host that refs carry, where it does not follow from `apiUrl`: a proxy or a local server
    /// may speak for `github.com`.
    #[schemars(extend("x-default" = "the host of apiUrl; github.com for https://api.github.com"))]
    host: Option<String>,
    /// The environment variables that may hold the token, in the order in which they are tried;
    /// after them `gh auth token` is asked, and last gh's file `hosts.yml` is read. Where `apiUrl`
    /// is not the host's own address, only variables that are named here are looked at, and gh is not
    /// asked.
    #[schemars(extend("x-default" = "as gh: GH_TOKEN, GITHUB_TOKEN; for GitHub Enterprise Server GH_ENTERPRISE_TOKEN, GITHUB_ENTERPRISE_TOKEN; none where apiUrl is not the host's own address"))]
    token_env: Option<Vec<String>>,
}

const GITHUB_API: &str = "https://api.github.com";

impl Default for GitHubFile {
    fn default() -> Self {
        Self {
            api_url: GITHUB_API.to_owned(),
            host: None,
            token_env: None,
        }
    }
}

/// Other services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integrations {
    /// Which GitHub is spoken to, and with whose token.
    pub github: GitHub,
}

/// Which GitHub is spoken to, and with whose token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHub {
    /// The address of the REST API, without a slash at its end.
    pub api_url: String,
    /// The host that refs carry: `github.com`, or the GHES host with its port if it has one.
    pub host: String,
    /// The environment variables that may hold the token, in the order in which they are tried.
    pub token_env: Vec<String>,
}

impl IntegrationsFile {
    pub(super) fn validate(self, checker: &mut Checker<'_>) -> Integrations {
        let section = KeyPath::of("integrations.github");
        let key = section.key("apiUrl");
        let address = match Address::read(&self.github.api_url) {
            Ok(address) => address,
            Err(message) => {
                checker.problem(&key, message);
                Address::github()
            }
        };
        if address.host != DEFAULT_HOST && address.is_bare && !address.is_loopback {
            checker.warning(
                &key,
                "has no path; GitHub Enterprise Server answers at https://<host>/api/v3",
            );
        }
        let host_key = section.key("host");
        let host = match self.github.host.as_deref().map(read_host) {
            None => address.host.clone(),
            Some(Ok(host)) => host,
            Some(Err(message)) => {
                checker.problem(&host_key, message);
                address.host.clone()
            }
        };
        let key = section.key("tokenEnv");
        let token_env = match self.github.token_env {
            Some(names) => {
                if names.is_empty() {
                    checker.problem(&key, "names no variable; delete the line to use gh's");
                }
                names
            }
            None if address.is_own_of(&host) => usual_variables(&host),
            None => {
                if !address.is_loopback {
                    checker.warning(
                        &host_key,
                        "the address in apiUrl is not this host's own, so no token that is kept for the host goes there; name the variable that holds one in tokenEnv",
                    );
                }
                Vec::new()
            }
        };
        for (at, name) in token_env.iter().enumerate() {
            if !is_variable_name(name) {
                checker.problem(
                    &key.index(at),
                    "is not the name of an environment variable (the token itself does not belong here)",
                );
            }
        }
        Integrations {
            github: GitHub {
                api_url: address.url,
                host,
                token_env,
            },
        }
    }
}

impl Integrations {
    pub(super) fn settings(&self, out: &mut Settings<'_>) {
        out.put("integrations.github.apiUrl", &self.github.api_url);
        out.put("integrations.github.host", &self.github.host);
        out.put("integrations.github.tokenEnv", &self.github.token_env);
    }
}

struct Address {
    url: String,
    host: String,
    is_safe: bool,
    is_bare: bool,
    is_loopback: bool,
}

impl Address {
    fn github() -> Self {
        Self {
            url: GITHUB_API.to_owned(),
            host: DEFAULT_HOST.to_owned(),
            is_safe: true,
            is_bare: true,
            is_loopback: false,
        }
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        let url = text.trim_end_matches('/');
        let (is_safe, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err("expected an address that begins with https://"),
        };
        if url.contains(['?', '#', '@', '\\']) || url.contains(char::is_whitespace) {
            return Err(
                "expected only https://<host>[:<port>][/<path>]; tokens do not belong here",
            );
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let authority = authority.to_ascii_lowercase();
        let name = authority.split(':').next().unwrap_or_default();
        let is_loopback = matches!(name, "localhost" | "127.0.0.1");
        if !is_safe && !is_loopback {
            return Err("expected https://: over http:// anybody on the way could read the token");
        }
        let host = web_host(&authority, is_safe);
        let port = authority.strip_prefix(name).unwrap_or_default();
        let port_is_fine = port.is_empty()
            || port
                .strip_prefix(':')
                .is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        if !port_is_fine || RepoRef::new(&host, "o", "r").is_err() {
            return Err("expected https://<host>[:<port>][/<path>]");
        }
        Ok(Self {
            url: url.to_owned(),
            host,
            is_safe,
            is_bare: path.is_empty(),
            is_loopback,
        })
    }

    /// Tells whether what people keep for `host` is meant for this address.
    fn is_own_of(&self, host: &str) -> bool {
        let beside_the_api = self.host.strip_prefix("api.") == Some(host);
        self.is_safe && (self.host == host || beside_the_api)
    }
}

/// The variables that gh reads for a host, in its order.
fn usual_variables(host: &str) -> Vec<String> {
    let names = if host == DEFAULT_HOST || host.ends_with(".ghe.com") {
        ["GH_TOKEN", "GITHUB_TOKEN"]
    } else {
        ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"]
    };
    names.map(str::to_owned).to_vec()
}

/// Reads the host of refs, as it stands in the addresses of web pages.
fn read_host(text: &str) -> Result<String, &'static str> {
    let host = text.to_ascii_lowercase();
    if RepoRef::new(&host, "o", "r").is_err() {
        return Err(
            "expected a host as it stands in refs and web addresses, for example github.com",
        );
    }
    if host == "api.github.com" {
        return Err("is the API's; refs carry github.com");
    }
    Ok(host)
}

/// The host of the web pages behind an API host; refs and URLs of work items carry that one.
fn web_host(authority: &str, is_https: bool) -> String {
    let authority = match authority.strip_suffix(":443") {
        Some(name) if is_https => name,
        _ => authority,
    };
    match authority.strip_prefix("api.") {
        Some(rest) if rest == DEFAULT_HOST || rest.ends_with(".ghe.com") => rest.to_owned(),
        _ => authority.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_follows_from_the_address() {
        for (url, host) in [
            ("https://api.github.com", "github.com"),
            ("https://API.github.com:443/", "github.com"),
            ("https://ghe.example/api/v3/", "ghe.example"),
            ("https://ghe.example:8443/api/v3", "ghe.example:8443"),
            ("https://api.octo.ghe.com", "octo.ghe.com"),
            ("http://127.0.0.1:4567", "127.0.0.1:4567"),
            ("http://localhost:80/api", "localhost:80"),
        ] {
            let address = Address::read(url).ok().unwrap();
            assert_eq!(address.host, host, "{url}");
            assert!(!address.url.ends_with('/'));
        }
    }

    #[test]
    fn an_address_that_could_leak_the_token_is_refused() {
        for url in [
            "",
            "api.github.com",
            "ftp://x.y",
            "https://",
            "https:///api",
            "https://u:p@ghe.example",
            "https://ghe.example\\@evil.example",
            "http://ghe.example/api/v3",
            "http://127.0.0.1.evil.example",
            "https://ghe.example?x=1",
            "https://ghe.example:0",
            "https://ghe.example:x",
            "https://ghe .example",
            "https://nodots",
        ] {
            assert!(Address::read(url).is_err(), "{url}");
        }
    }
}
