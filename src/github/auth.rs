//! Credentials: where a token comes from, in the order of GitHub's own command line tool.
//!
//! A token belongs to one host. What people keep for github.com is never looked up for another host,
//! nor for a local server that only plays github.com. Tokens never show in `Debug`, logs or errors.

use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::hosts_file;
use super::{Endpoint, GitHubError};

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

/// A call of gh: no shell, stdin closed, killed at the deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GhCall {
    /// The absolute program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// How long it may take.
    pub deadline: Duration,
}

/// What a call of gh gives: its standard output, or one line on why there is none.
pub type GhAnswer = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// Runs gh. The process module does it; this one starts no process.
pub type RunGh = Arc<dyn Fn(GhCall) -> GhAnswer + Send + Sync>;

/// Looks up an environment variable.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where to look for a token.
#[derive(Clone)]
pub struct TokenSource {
    /// Variables that the configuration names; asked first, and meant for the configured address.
    pub variables: Vec<String>,
    /// The environment.
    pub environment: Environment,
    /// How gh is run; None: it is not asked.
    pub run_gh: Option<RunGh>,
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
    pub fn of_process(variables: Vec<String>, run_gh: Option<RunGh>) -> Self {
        Self {
            variables,
            environment: Arc::new(|name| std::env::var(name).ok()),
            run_gh,
        }
    }

    /// Returns a source without any token, for servers that need none.
    #[must_use]
    pub fn none() -> Self {
        Self {
            variables: Vec::new(),
            environment: Arc::new(|_| None),
            run_gh: None,
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
        for name in variables {
            let value = (self.environment)(&name).unwrap_or_default();
            tried.push(format!("${name}"));
            if let Some(token) = Token::new(&value, Origin::Variable(name)) {
                return Ok(Some(token));
            }
        }
        if endpoint.is_hosts_own() {
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
        let run = self.run_gh.as_ref().ok_or("not asked")?;
        let path = (self.environment)("PATH").unwrap_or_default();
        let program = find_on_path("gh", &path).await.ok_or("not installed")?;
        let call = GhCall {
            program,
            // Without --hostname, gh would ignore the variables of a GHES.
            args: ["auth", "token", "--hostname", host]
                .map(str::to_owned)
                .to_vec(),
            deadline: GH_DEADLINE,
        };
        // The runner has the deadline too; this one holds even where the runner does not keep it.
        let answer = tokio::time::timeout(GH_DEADLINE + Duration::from_secs(1), run(call));
        match answer.await {
            Ok(Ok(output)) => Token::new(&output, Origin::Gh).ok_or_else(|| "no token".to_owned()),
            Ok(Err(problem)) => Err(problem),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }
}

async fn find_on_path(name: &str, path: &str) -> Option<PathBuf> {
    for dir in path.split(':').map(Path::new) {
        // A relative entry would make a checkout decide which program sees the token.
        if !dir.is_absolute() {
            continue;
        }
        let program = dir.join(name);
        if tokio::fs::metadata(&program)
            .await
            .is_ok_and(|found| is_program(&found))
        {
            return Some(program);
        }
    }
    None
}

fn is_program(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    found.is_file() && found.permissions().mode() & 0o111 != 0
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
