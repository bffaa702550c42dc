//! Credentials: where a token comes from, in the order of GitHub's own command line tool.
//!
//! A token belongs to one host. What people keep for github.com is never looked up for another host,
//! nor for a local server that only plays github.com. Tokens never show in `Debug`, logs or errors.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::hosts_file;
use super::{Endpoint, GitHubError};
use crate::model::text::one_line;
use crate::process::{self, Command, find_program};

/// How long `gh auth token` may take: a locked keyring would wait for a person.
const GH_DEADLINE: Duration = Duration::from_secs(5);
/// A token that GitHub refuses is looked up again at most this often.
const RENEW_GAP: Duration = Duration::from_secs(10);

/// A secret that opens the API, with the name of the place it was found in.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    secret: String,
    origin: Origin,
}

impl Token {
    /// Takes a secret as it was found; surrounding white space is not part of it.
    ///
    /// None when it is empty or could not stand in a header.
    #[must_use]
    pub fn new(secret: &str, origin: Origin) -> Option<Self> {
        let secret = secret.trim();
        let printable = secret.bytes().all(|byte| byte.is_ascii_graphic());
        (!secret.is_empty() && printable).then(|| Self {
            secret: secret.to_owned(),
            origin,
        })
    }

    /// Returns where it was found.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the header that carries it, marked so that no HTTP library prints it.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.secret)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(… from {})", self.origin)
    }
}

/// The place a token was found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An environment variable.
    Variable(String),
    /// `gh auth token`.
    Gh,
    /// gh's own file.
    HostsFile(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "${name}"),
            Self::Gh => f.write_str("`gh auth token`"),
            Self::HostsFile(path) => path.display().fmt(f),
        }
    }
}

/// Looks up an environment variable.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where to look for a token.
#[derive(Clone)]
pub struct TokenSource {
    /// Variables that the configuration names; asked first, and meant for the configured address.
    pub variables: Vec<String>,
    /// The environment.
    pub environment: Environment,
    /// Whether gh and its file may be asked.
    pub gh: Gh,
}

/// Whether gh and its file are asked for the token that they keep for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gh {
    /// They are, after the variables.
    Asked,
    /// They are not.
    LeftAlone,
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSource")
            .field("variables", &self.variables)
            .finish_non_exhaustive()
    }
}

impl TokenSource {
    /// Returns a source that looks in this process's environment.
    #[must_use]
    pub fn of_process(variables: Vec<String>) -> Self {
        Self {
            variables,
            environment: Arc::new(|name| std::env::var(name).ok()),
            gh: Gh::Asked,
        }
    }

    /// Returns a source without any token, for servers that need none.
    #[must_use]
    pub fn none() -> Self {
        Self {
            variables: Vec::new(),
            environment: Arc::new(|_| None),
            gh: Gh::LeftAlone,
        }
    }

    /// Asks every place in turn: the configured variables, gh's variables for this kind of host, gh
    /// itself, gh's file.
    ///
    /// # Errors
    /// [`GitHubError::NoToken`] with what every place said, unless the address works without one.
    pub async fn find(&self, endpoint: &Endpoint) -> Result<Option<Token>, GitHubError> {
        if !endpoint.may_carry_token() {
            return Ok(None);
        }
        let mut tried = Vec::new();
        let mut variables = self.variables.clone();
        if endpoint.is_hosts_own() {
            let known_to_gh = if endpoint.is_dot_com() {
                ["GH_TOKEN", "GITHUB_TOKEN"]
            } else {
                ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"]
            };
            variables.extend(known_to_gh.map(str::to_owned));
        }
        let mut named = BTreeSet::new();
        variables.retain(|name| named.insert(name.clone()));
        for name in variables {
            let value = (self.environment)(&name).unwrap_or_default();
            tried.push(format!("${name}"));
            if let Some(token) = Token::new(&value, Origin::Variable(name)) {
                return Ok(Some(token));
            }
        }
        if endpoint.is_hosts_own() && self.gh == Gh::Asked {
            match self.ask_gh(endpoint.host()).await {
                Ok(token) => return Ok(Some(token)),
                Err(problem) => tried.push(format!("`gh auth token` ({problem})")),
            }
            match hosts_file::token(self.environment.as_ref(), endpoint.host()).await {
                Ok(token) => return Ok(Some(token)),
                Err(problem) => tried.push(problem),
            }
        }
        if endpoint.works_anonymously() {
            return Ok(None);
        }
        if tried.is_empty() {
            return Err(GitHubError::NoTokenNamed {
                host: endpoint.host().to_owned(),
                address: endpoint.base().to_owned(),
            });
        }
        Err(GitHubError::NoToken {
            host: endpoint.host().to_owned(),
            tried: tried.join(", "),
        })
    }

    async fn ask_gh(&self, host: &str) -> Result<Token, String> {
        let path = (self.environment)("PATH").unwrap_or_default();
        let program = find_program("gh", Some(path.as_ref())).ok_or("not installed")?;
        let command = Command {
            deadline: GH_DEADLINE,
            // Without --hostname, gh would ignore the variables of a GHES.
            ..Command::new(program).args(["auth", "token", "--hostname", host])
        };
        let output = process::run(&command)
            .await
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(one_line(&String::from_utf8_lossy(&output.stderr), 200));
        }
        Token::new(&String::from_utf8_lossy(&output.stdout), Origin::Gh)
            .ok_or_else(|| "no token".to_owned())
    }
}

/// The token in use, looked up at the first request and again when GitHub refuses it.
#[derive(Debug)]
pub(super) struct Credentials {
    source: TokenSource,
    current: Mutex<Current>,
}

#[derive(Debug, Default)]
struct Current {
    looked_up: bool,
    token: Option<Token>,
    renewed: Option<Instant>,
}

impl Credentials {
    pub(super) fn new(source: TokenSource) -> Self {
        Self {
            source,
            current: Mutex::new(Current::default()),
        }
    }

    /// Returns the token to use; a failed look-up is tried again at the next request.
    pub(super) async fn token(&self, endpoint: &Endpoint) -> Result<Option<Token>, GitHubError> {
        let mut current = self.current.lock().await;
        if !current.looked_up {
            current.token = self.source.find(endpoint).await?;
            current.looked_up = true;
        }
        Ok(current.token.clone())
    }

    /// Asks the source again because `refused` does not work any more; None when there is no other.
    ///
    /// People log in again while the daemon runs. Requests that fail together ask once.
    pub(super) async fn renew(
        &self,
        endpoint: &Endpoint,
        refused: Option<&Token>,
    ) -> Result<Option<Token>, GitHubError> {
        let mut current = self.current.lock().await;
        if current.token.as_ref() != refused {
            return Ok(current.token.clone());
        }
        if current.renewed.is_some_and(|at| at.elapsed() < RENEW_GAP) {
            return Ok(None);
        }
        current.renewed = Some(Instant::now());
        current.token = self.source.find(endpoint).await?;
        Ok(current.token.clone().filter(|token| Some(token) != refused))
    }
}
