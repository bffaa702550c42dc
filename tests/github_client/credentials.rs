//! Where tokens are looked for, and where they never show.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use the_loop::github::auth::{Environment, Gh, Token, TokenSource};
use the_loop::github::{Endpoint, GitHub, GitHubError};

use super::{item, limits, server, token};

fn environment(pairs: &'static [(&'static str, &'static str)]) -> Environment {
    Arc::new(|name| {
        pairs
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
    })
}

#[tokio::test]
async fn a_refused_token_is_looked_up_again_once() {
    let server = server().await;
    server.accept_only(Some("new"));
    let looked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&looked);
    let source = TokenSource {
        variables: vec!["T".to_owned()],
        environment: Arc::new(move |_| {
            let old = counter.fetch_add(1, Ordering::SeqCst) == 0;
            Some(if old { "old" } else { "new" }.to_owned())
        }),
        gh: Gh::LeftAlone,
    };
    let endpoint = Endpoint::new(&server.url(), "github.com").unwrap();
    let github = GitHub::new(endpoint, source, limits());
    github.whoami().await.unwrap();
    github.create_comment(&item(1), "x").await.unwrap();
    assert_eq!(looked.load(Ordering::SeqCst), 2);

    server.accept_only(Some("newer"));
    for _ in 0..3 {
        let error = github.whoami().await.unwrap_err();
        assert!(matches!(error, GitHubError::Unauthorized { .. }), "{error}");
        assert!(
            error.to_string().contains("$T") && !error.to_string().contains("new"),
            "{error}"
        );
    }
    assert!(looked.load(Ordering::SeqCst) <= 3, "asked again and again");
}

async fn found(api: &str, host: &str, source: &TokenSource) -> String {
    let endpoint = Endpoint::new(api, host).unwrap();
    match source.find(&endpoint).await {
        Ok(Some(token)) => token.origin().to_string(),
        Ok(None) => "none".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn tokens_are_looked_for_in_order_and_for_their_host_only() {
    const ALL: &[(&str, &str)] = &[
        ("MINE", "0"),
        ("GH_TOKEN", "1"),
        ("GITHUB_TOKEN", "2"),
        ("GH_ENTERPRISE_TOKEN", "3"),
        ("GITHUB_ENTERPRISE_TOKEN", "4"),
    ];
    let dot_com = ("https://api.github.com", "github.com");
    let tenant = ("https://api.octo.ghe.com", "octo.ghe.com");
    let ghes = ("https://ghe.example/api/v3", "ghe.example");
    let local = ("http://127.0.0.1:1", "github.com");
    let clear = ("http://ghe.example/api/v3", "ghe.example");
    for (variables, pairs, (api, host), expected) in [
        (&["MINE"][..], ALL, dot_com, "$MINE"),
        (&["MINE"], &ALL[1..], dot_com, "$GH_TOKEN"),
        (&[], &ALL[2..], dot_com, "$GITHUB_TOKEN"),
        (&[], &ALL[3..], dot_com, "no token for github.com"),
        (&[], ALL, tenant, "$GH_TOKEN"),
        (&[], ALL, ghes, "$GH_ENTERPRISE_TOKEN"),
        (&[], &ALL[4..], ghes, "$GITHUB_ENTERPRISE_TOKEN"),
        (&[], &ALL[..3], ghes, "no token for ghe.example"),
        (
            &[],
            &[("GH_TOKEN", " \n"), ("GITHUB_TOKEN", "ok")],
            dot_com,
            "$GITHUB_TOKEN",
        ),
        (&[], ALL, local, "none"),
        (&["MINE"], ALL, local, "$MINE"),
        (&["MINE"], ALL, clear, "none"),
        (
            &[],
            ALL,
            ("https://evil.example", "github.com"),
            "https://evil.example is not github.com's own address",
        ),
    ] {
        let source = TokenSource {
            variables: variables.iter().map(|name| (*name).to_owned()).collect(),
            environment: environment(pairs),
            gh: Gh::LeftAlone,
        };
        let got = found(api, host, &source).await;
        assert!(
            got.starts_with(expected),
            "{api} {variables:?} {pairs:?}: {got}"
        );
    }
}

/// Puts a script in the place of gh.
fn install_gh(folder: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let gh = folder.join("gh");
    std::fs::write(&gh, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&gh, PermissionsExt::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn gh_and_its_file_come_last_and_a_missing_refusing_or_hanging_gh_is_passed_over() {
    let home = tempfile::tempdir().unwrap();
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let source = |path: &Path| {
        let (path, config) = (
            path.display().to_string(),
            home.path().display().to_string(),
        );
        TokenSource {
            variables: Vec::new(),
            environment: Arc::new(move |name: &str| match name {
                "PATH" => Some(path.clone()),
                "GH_CONFIG_DIR" => Some(config.clone()),
                _ => None,
            }),
            gh: Gh::Asked,
        }
    };
    let (api, host) = ("https://api.github.com", "github.com");

    install_gh(
        &bin,
        r#"[ "$*" = "auth token --hostname github.com" ] && echo t"#,
    );
    assert_eq!(found(api, host, &source(&bin)).await, "`gh auth token`");
    let none = found(api, host, &source(home.path())).await;
    assert!(
        none.contains("not installed") && none.contains("hosts.yml"),
        "{none}"
    );
    install_gh(&bin, "echo s3cret; echo not logged in >&2; exit 1");
    let refused = found(api, host, &source(&bin)).await;
    assert!(
        refused.contains("(not logged in)") && !refused.contains("s3cret"),
        "{refused}"
    );

    std::fs::write(
        home.path().join("hosts.yml"),
        "github.com: {oauth_token: filed}",
    )
    .unwrap();
    assert!(
        found(api, host, &source(home.path()))
            .await
            .ends_with("hosts.yml")
    );
    install_gh(&bin, "exec sleep 60");
    tokio::time::pause();
    assert!(found(api, host, &source(&bin)).await.ends_with("hosts.yml"));
}

#[tokio::test]
async fn each_place_is_named_once_where_none_has_a_token() {
    let source = TokenSource {
        variables: vec!["GH_TOKEN".to_owned(), "GITHUB_TOKEN".to_owned()],
        environment: environment(&[]),
        gh: Gh::LeftAlone,
    };
    let error = found("https://api.github.com", "github.com", &source).await;
    assert!(
        error.contains(" in $GH_TOKEN, $GITHUB_TOKEN: run "),
        "{error}"
    );
}

#[tokio::test]
async fn no_form_of_a_token_shows_it() {
    let endpoint = Endpoint::new("http://127.0.0.1:1", "github.com").unwrap();
    let source = token("s3cret");
    let token: Token = source.find(&endpoint).await.unwrap().unwrap();
    let github = GitHub::new(endpoint, source.clone(), limits());
    github.whoami().await.unwrap_err();
    let shown = format!("{token:?} {source:?} {github:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
}
