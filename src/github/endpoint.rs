//! Where the API is, which host it speaks for, and which addresses may be asked.

use reqwest::Url;

use crate::model::{DEFAULT_HOST, RepoRef};

use super::GitHubError;

/// The API of one GitHub host.
#[derive(Debug, Clone)]
pub struct Endpoint {
    base: Url,
    graphql: Url,
    host: String,
}

impl Endpoint {
    /// Reads an API address: `https://api.github.com`, `https://<ghes>/api/v3`, or any http(s) address
    /// that plays the API of `host`.
    ///
    /// # Errors
    /// [`GitHubError::BadAddress`] when it is no plain http(s) address.
    pub fn new(api_url: &str, host: &str) -> Result<Self, GitHubError> {
        let bad = |problem: &str| GitHubError::BadAddress {
            url: without_userinfo(api_url),
            problem: problem.to_owned(),
        };
        let mut base = Url::parse(api_url).map_err(|error| bad(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(bad("it must begin with https://"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(bad("it must not carry a name or password"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(bad("it must end with its path"));
        }
        let path = base.path().trim_end_matches('/').to_owned();
        base.set_path(&path);
        let mut graphql = base.clone();
        graphql.set_path(&match path.strip_suffix("/v3") {
            Some(parent) => format!("{parent}/graphql"),
            None => format!("{path}/graphql"),
        });
        Ok(Self {
            base,
            graphql,
            host: host.to_ascii_lowercase(),
        })
    }

    /// Returns the host that repositories name: `github.com`, or the one of a GHES.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the API address without a trailing slash.
    #[must_use]
    pub fn base(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Returns the address of GraphQL: `/graphql`, and `/api/graphql` beside `/api/v3`.
    #[must_use]
    pub fn graphql(&self) -> &Url {
        &self.graphql
    }

    /// Returns the path of a repository's API, having checked that it lives here.
    ///
    /// # Errors
    /// [`GitHubError::OtherHost`].
    pub fn repo_path(&self, repo: &RepoRef) -> Result<String, GitHubError> {
        if repo.host().eq_ignore_ascii_case(&self.host) {
            Ok(format!("/repos/{}/{}", repo.owner(), repo.name()))
        } else {
            Err(GitHubError::OtherHost {
                repo: repo.to_string(),
                host: self.host.clone(),
            })
        }
    }

    /// Resolves a path below the base, or an absolute address that GitHub gave.
    ///
    /// # Errors
    /// [`GitHubError::Moved`] when the address leads to another host, scheme or port, or out of the
    /// base path: nothing of ours is sent there.
    pub fn resolve(&self, path_or_url: &str) -> Result<Url, GitHubError> {
        let text = if path_or_url.starts_with('/') {
            format!("{}{path_or_url}", self.base())
        } else {
            path_or_url.to_owned()
        };
        let astray = || GitHubError::Moved {
            url: self.base().to_owned(),
            to: without_userinfo(&text),
        };
        let url = Url::parse(&text).map_err(|_| astray())?;
        if self.owns(&url) {
            Ok(url)
        } else {
            Err(astray())
        }
    }

    /// Tells whether an address belongs to this API.
    #[must_use]
    pub fn owns(&self, url: &Url) -> bool {
        let same_origin = url.scheme() == self.base.scheme()
            && url.host() == self.base.host()
            && url.port_or_known_default() == self.base.port_or_known_default()
            && url.username().is_empty()
            && url.password().is_none();
        let base_path = self.base.path().trim_end_matches('/');
        let below_base = url
            .path()
            .strip_prefix(base_path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        same_origin && (below_base || url.path() == self.graphql.path())
    }

    /// Tells whether the address is this machine itself.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let Some(name) = self.base.host_str() else {
            return false;
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost")
            || name
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }

    /// Tells whether TLS is needed.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.base.scheme() == "https"
    }

    /// Tells whether a token may travel there: never in clear over a network.
    #[must_use]
    pub fn may_carry_token(&self) -> bool {
        self.is_https() || self.is_loopback()
    }

    /// Tells whether requests without a token make sense.
    #[must_use]
    pub fn works_anonymously(&self) -> bool {
        !self.is_https() || self.is_loopback()
    }

    /// Tells whether the address really is the host's own, so that the credentials that people keep
    /// for that host are meant for it. A local server that plays github.com gets none of them.
    #[must_use]
    pub fn is_hosts_own(&self) -> bool {
        let with_port = match (self.base.host_str(), self.base.port()) {
            (Some(name), Some(port)) => format!("{name}:{port}"),
            (Some(name), None) => name.to_owned(),
            (None, _) => return false,
        };
        self.is_https()
            && (with_port.eq_ignore_ascii_case(&self.host)
                || with_port.eq_ignore_ascii_case(&format!("api.{}", self.host)))
    }

    /// Tells whether the host is github.com or one of its data residency tenants, and not a GHES.
    #[must_use]
    pub fn is_dot_com(&self) -> bool {
        self.host == DEFAULT_HOST || self.host.ends_with(".ghe.com")
    }
}

/// Returns an address without the part that could hold a password.
fn without_userinfo(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            format!("{}://…{}", &text[..scheme], &text[at..])
        }
        _ => text.to_owned(),
    }
}

/// Percent-encodes one value of a query.
#[must_use]
pub(super) fn encode(value: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            write!(out, "%{byte:02X}").unwrap_or_default();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str, host: &str) -> Endpoint {
        Endpoint::new(url, host).unwrap()
    }

    #[test]
    fn every_kind_of_host_has_its_rest_and_graphql_addresses() {
        for (api, host, rest, graphql) in [
            (
                "https://api.github.com",
                "github.com",
                "https://api.github.com/user",
                "https://api.github.com/graphql",
            ),
            (
                "https://api.github.com/",
                "github.com",
                "https://api.github.com/user",
                "https://api.github.com/graphql",
            ),
            (
                "https://ghe.example:8443/api/v3/",
                "ghe.example:8443",
                "https://ghe.example:8443/api/v3/user",
                "https://ghe.example:8443/api/graphql",
            ),
            (
                "https://api.octo.ghe.com",
                "octo.ghe.com",
                "https://api.octo.ghe.com/user",
                "https://api.octo.ghe.com/graphql",
            ),
            (
                "http://127.0.0.1:9/api/v3",
                "ghe.example",
                "http://127.0.0.1:9/api/v3/user",
                "http://127.0.0.1:9/api/graphql",
            ),
        ] {
            let endpoint = endpoint(api, host);
            assert_eq!(endpoint.resolve("/user").unwrap().as_str(), rest, "{api}");
            assert_eq!(endpoint.graphql().as_str(), graphql, "{api}");
        }
    }

    #[test]
    fn addresses_outside_the_api_are_not_asked() {
        let ghes = endpoint("https://ghe.example/api/v3", "ghe.example");
        assert!(
            ghes.resolve("https://ghe.example/api/v3/repositories/1/issues?page=2")
                .is_ok()
        );
        for other in [
            "https://evil.example/api/v3/x",
            "https://ghe.example.evil.example/api/v3/x",
            "https://ghe.example:444/api/v3/x",
            "http://ghe.example/api/v3/x",
            "https://user@ghe.example/api/v3/x",
            "https://ghe.example/login",
            "https://ghe.example/api/v3x",
            "not an address",
        ] {
            assert!(
                matches!(ghes.resolve(other), Err(GitHubError::Moved { .. })),
                "{other}"
            );
        }
    }

    #[test]
    fn addresses_that_cannot_be_an_api_are_refused_without_showing_a_password() {
        for bad in [
            "",
            "api.github.com",
            "ftp://api.github.com",
            "https://u:secret@ghe.example/api/v3",
            "https://ghe.example/api/v3?x=1",
        ] {
            let error = Endpoint::new(bad, "github.com").unwrap_err().to_string();
            assert!(
                error.contains("apiUrl") && !error.contains("secret"),
                "{error}"
            );
        }
    }

    #[test]
    fn tokens_travel_over_tls_or_not_beyond_this_machine() {
        for (api, carries, anonymous) in [
            ("https://api.github.com", true, false),
            ("http://127.0.0.1:8080", true, true),
            ("http://[::1]:8080", true, true),
            ("http://localhost:8080", true, true),
            ("http://ghe.example/api/v3", false, true),
        ] {
            let endpoint = endpoint(api, "github.com");
            assert_eq!(endpoint.may_carry_token(), carries, "{api}");
            assert_eq!(endpoint.works_anonymously(), anonymous, "{api}");
        }
    }

    #[test]
    fn a_server_that_plays_a_host_is_not_that_host() {
        assert!(endpoint("https://api.github.com", "github.com").is_hosts_own());
        assert!(endpoint("https://ghe.example/api/v3", "GHE.example").is_hosts_own());
        assert!(!endpoint("http://127.0.0.1:1", "github.com").is_hosts_own());
        assert!(!endpoint("https://evil.example", "github.com").is_hosts_own());
    }

    #[test]
    fn a_repository_of_another_host_is_refused() {
        let dot_com = endpoint("https://api.github.com", "github.com");
        assert_eq!(
            dot_com.repo_path(&"Octo/my.app".parse().unwrap()).unwrap(),
            "/repos/Octo/my.app"
        );
        let error = dot_com
            .repo_path(&"ghe.example/o/r".parse().unwrap())
            .unwrap_err();
        assert!(matches!(error, GitHubError::OtherHost { .. }), "{error}");
    }

    #[test]
    fn labels_survive_a_query() {
        assert_eq!(
            encode("the-loop: auto-execute"),
            "the-loop%3A%20auto-execute"
        );
        assert_eq!(encode("a&b=c,ü"), "a%26b%3Dc%2C%C3%BC");
    }
}
