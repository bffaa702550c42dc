//! What stands in for GitHub's `gh` where the Python program looks for it: the few questions that it
//! asks while it polls, put to the local GitHub.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;

use serde_json::{Value, json};

/// The variable with the address of the local GitHub.
pub(crate) const ADDRESS: &str = "CHAOS_GITHUB";

type Answer = Result<Value, String>;

/// Answers one call of `gh`, as a process of its own.
pub(crate) fn main(args: &[String]) -> ExitCode {
    match answer(args) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(complaint) => {
            eprintln!("gh: {complaint}");
            ExitCode::FAILURE
        }
    }
}

fn answer(args: &[String]) -> Answer {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let option = |name| {
        let at = words.iter().position(|word| *word == name);
        at.and_then(|at| words.get(at + 1).copied())
            .ok_or(format!("{name} is missing"))
    };
    match words.as_slice() {
        ["issue", "list", ..] => {
            let (repo, label) = (option("--repo")?, option("--label")?);
            let asked = label.replace(' ', "%20").replace(':', "%3A");
            let all = list(&format!("/repos/{repo}/issues?labels={asked}&state=open"))?;
            let issues = all.iter().filter(|item| item["pull_request"].is_null());
            Ok(issues.map(item).collect())
        }
        ["pr", "list", ..] => {
            let (repo, label) = (option("--repo")?, option("--label")?);
            let all = list(&format!("/repos/{repo}/pulls?state=open"))?;
            let pulls = all.iter().filter(|pull| {
                let labels = pull["labels"].as_array();
                labels.is_some_and(|all| all.iter().any(|one| one["name"] == label))
            });
            Ok(pulls.map(item).collect())
        }
        ["issue" | "pr", "view", number, ..] => {
            let repo = option("--repo")?;
            let all = list(&format!("/repos/{repo}/issues/{number}/comments?"))?;
            Ok(json!({ "comments": all.iter().map(comment).collect::<Value>() }))
        }
        ["api", path] => get(&format!("/{path}")),
        other => Err(format!("unknown question {other:?}")),
    }
}

fn item(item: &Value) -> Value {
    json!({
        "number": item["number"],
        "title": item["title"],
        "labels": item["labels"],
        "updatedAt": item["updated_at"],
        "url": item["html_url"],
        "author": { "login": item["user"]["login"] },
        "headRefName": item["head"]["ref"],
        "body": item["body"],
        "closingIssuesReferences": [],
    })
}

fn comment(comment: &Value) -> Value {
    json!({
        "id": comment["node_id"],
        "body": comment["body"],
        "author": { "login": comment["user"]["login"] },
        "createdAt": comment["created_at"],
        "url": comment["html_url"],
    })
}

/// Reads a list to its end; the path has its query already.
fn list(path: &str) -> Result<Vec<Value>, String> {
    const PAGE: usize = 100;
    let mut all = Vec::new();
    loop {
        let page = all.len() / PAGE + 1;
        let answer = get(&format!("{path}&per_page={PAGE}&page={page}"))?;
        let elements = answer.as_array().ok_or("not a list")?;
        all.extend(elements.iter().cloned());
        if elements.len() < PAGE {
            return Ok(all);
        }
    }
}

/// Asks in the plainest HTTP there is: the connection's end is the answer's.
fn get(path: &str) -> Answer {
    let told = |error: std::io::Error| error.to_string();
    let address = std::env::var(ADDRESS).map_err(|error| format!("{ADDRESS}: {error}"))?;
    let mut stream = TcpStream::connect(&address).map_err(told)?;
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: {address}\r\nUser-Agent: gh\r\n\r\n"
    )
    .map_err(told)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(told)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    match head.split(' ').nth(1) {
        Some("200") => serde_json::from_str(body).map_err(|error| error.to_string()),
        status => Err(format!("HTTP {}", status.unwrap_or("without a status"))),
    }
}
