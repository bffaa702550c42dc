//! The agent's arguments, and the script that stands for them.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::Parser;

/// A scripted agent for tests and for `the-loop demo`: it reads messages and answers without a model.
#[derive(Debug, Clone, Parser)]
#[command(name = "the-loop demo-agent", disable_version_flag = true)]
pub(super) struct Options {
    /// Read further arguments from a file, one a line
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// Start a conversation with this id
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    session: Option<String>,

    /// Go on with the conversation that has this id
    #[arg(long, value_name = "ID")]
    pub(super) resume: Option<String>,

    /// Keep conversations in this folder
    #[arg(long, value_name = "DIR")]
    pub(super) conversations: Option<PathBuf>,

    /// Append a JSON line for all that is read
    #[arg(long, value_name = "FILE")]
    pub(super) log: Option<PathBuf>,

    /// Be deaf for so long, on a terminal that still echoes
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    pub(super) boot_delay: Duration,

    /// Work for so long on each message
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    pub(super) busy: Duration,

    /// End by itself, after a time ("500ms") or a number of messages ("3")
    #[arg(long, value_name = "MS|N")]
    pub(super) exit_after: Option<ExitAfter>,

    /// The exit code of that end
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    pub(super) exit_code: u8,

    /// Begin with a question that swallows input until Enter answers it
    #[arg(long)]
    pub(super) dialog: bool,

    /// Go on when the terminal hangs up
    #[arg(long)]
    pub(super) ignore_hup: bool,

    /// Go on when asked to end
    #[arg(long)]
    pub(super) ignore_term: bool,

    /// The first message
    #[arg(value_name = "PROMPT")]
    pub(super) prompt: Option<String>,
}

/// When a scripted agent ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitAfter {
    /// So long after it was ready.
    Time(Duration),
    /// With this message; the prompt is the first one.
    Messages(usize),
}

impl FromStr for ExitAfter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| {
            digits
                .parse()
                .map_err(|_| format!("{text:?} is neither a time (500ms) nor a count (3)"))
        };
        match text.strip_suffix("ms") {
            Some(digits) => Ok(Self::Time(Duration::from_millis(number(digits)?))),
            None => Ok(Self::Messages(
                usize::try_from(number(text)?).unwrap_or(usize::MAX),
            )),
        }
    }
}

fn milliseconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_millis)
}

/// The outcome of reading arguments.
pub(super) enum Parsed {
    Options(Box<Options>),
    /// Help or a complaint was printed; the program ends with this.
    Said(ExitCode),
}

impl Options {
    /// Reads the arguments, then those of the script before them.
    pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Parsed {
        let args: Vec<_> = args.into_iter().collect();
        let parse = |script: Vec<OsString>| {
            let program = OsString::from("demo-agent");
            Self::try_parse_from(std::iter::once(program).chain(script).chain(args.clone()))
        };
        let parsed = parse(Vec::new()).and_then(|options| match &options.script {
            None => Ok(options),
            Some(file) => {
                let script = fs::read_to_string(file).map_err(|error| {
                    let message = format!("reading the script {}: {error}\n", file.display());
                    clap::Error::raw(clap::error::ErrorKind::Io, message)
                })?;
                parse(lines(&script).collect())
            }
        });
        match parsed {
            Ok(options) => Parsed::Options(Box::new(options)),
            Err(complaint) => {
                let code = if complaint.use_stderr() { 2 } else { 0 };
                // Nobody is left to tell when the terminal is gone.
                drop(complaint.print());
                Parsed::Said(ExitCode::from(code))
            }
        }
    }

    /// Returns the id of the conversation, whether it is new or resumed.
    pub(super) fn session(&self) -> Option<&str> {
        self.resume.as_deref().or(self.session.as_deref())
    }
}

fn lines(script: &str) -> impl Iterator<Item = OsString> {
    script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(OsString::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Option<Options> {
        match Options::parse(args.iter().map(OsString::from)) {
            Parsed::Options(options) => Some(*options),
            Parsed::Said(_) => None,
        }
    }

    #[test]
    fn the_surface_is_sound() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }

    #[test]
    fn a_script_stands_for_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        fs::write(&script, "# slow\n--boot-delay=250\n\n--exit-after=2\n").unwrap();

        let options =
            parse(&["--script", script.to_str().unwrap(), "--session", "a", "hi"]).unwrap();

        assert_eq!(options.boot_delay, Duration::from_millis(250));
        assert_eq!(options.exit_after, Some(ExitAfter::Messages(2)));
        assert_eq!(options.session(), Some("a"));
        assert_eq!(options.prompt.as_deref(), Some("hi"));
    }

    #[test]
    fn an_end_is_a_time_or_a_count() {
        assert_eq!(
            "500ms".parse(),
            Ok(ExitAfter::Time(Duration::from_millis(500)))
        );
        assert_eq!("3".parse(), Ok(ExitAfter::Messages(3)));
        assert!("soon".parse::<ExitAfter>().is_err());
        assert!(parse(&["--exit-after", "soon"]).is_none());
        assert!(parse(&["--session", "a", "--resume", "a"]).is_none());
    }
}
