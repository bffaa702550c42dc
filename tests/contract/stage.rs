//! What a case needs beside tmux itself: programs, people, and a server that can be stopped.

use std::ffi::OsString;
use std::time::Duration;

use the_loop::model::{PaneId, SessionName, TmuxSessionId, TmuxSocket, WorkItemRef};
use the_loop::runner::{
    Answer, Field, Invocation, Marker, OptionName, Scope, Setting, Start, Target, TmuxCommand,
    TmuxServer, Unanswered,
};

/// How a recorder reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manners {
    /// It asks for brackets around what is pasted.
    Brackets,
    /// It does not.
    Plain,
}

/// A tmux, and the world around it.
pub(crate) trait Stage {
    type Tmux: TmuxServer;

    fn tmux(&self) -> &Self::Tmux;
    /// Where a server runs that stays without sessions.
    fn socket(&self) -> TmuxSocket;
    /// Where no server runs yet.
    fn other_socket(&self) -> TmuxSocket;

    /// A program that writes down what is typed.
    fn recorder(&self, label: &str, manners: Manners) -> Vec<OsString>;
    /// A program that writes down its further arguments, and then stays.
    fn argument_recorder(&self, label: &str, further: &[&str]) -> Vec<OsString>;
    /// Waits until a recorder reads.
    async fn ready(&self, label: &str);
    /// Waits until what was recorded ends as told, and returns it.
    async fn recorded(&self, label: &str, end: &str) -> String;
    /// Returns what was recorded so far.
    fn so_far(&self, label: &str) -> String;

    fn freeze(&self);
    fn thaw(&self);
    fn remove_socket(&self);
    /// Has the first server make its socket again.
    async fn make_socket_again(&self);
    fn kill_server(&self);
    /// Ends a pane's process.
    async fn end(&self, made: &Made);
    /// Notes in tmux that the harness of the pane ended, as its host does.
    fn note_end(&self, made: &Made);

    fn persons_pane(&self, made: &Made) -> PaneId;
    fn copy_mode(&self, made: &Made);
    fn input_off(&self, made: &Made);
    /// Somebody looks at the session.
    async fn attach(&self, made: &Made, read_only: bool);
}

/// A session that a case made.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) name: SessionName,
    pub(crate) session: TmuxSessionId,
    pub(crate) pane: PaneId,
    pub(crate) pid: i32,
}

impl Made {
    /// Its pane, in its session.
    pub(crate) fn at(&self) -> Target {
        Target::Pane(self.session.clone(), self.pane.clone())
    }
}

pub(crate) fn name(number: u64) -> SessionName {
    let item: WorkItemRef = format!("github:o/r#{number}").parse().unwrap();
    item.session_name().unwrap()
}

pub(crate) fn invocation(socket: TmuxSocket, commands: Vec<TmuxCommand>) -> Invocation {
    Invocation {
        socket,
        start: Start::Never,
        commands,
        input: None,
        folder: None,
        deadline: Duration::from_secs(10),
    }
}

/// Asks the stage's server.
pub(crate) async fn ask(stage: &impl Stage, commands: Vec<TmuxCommand>) -> Answer {
    let asked = invocation(stage.socket(), commands);
    stage.tmux().call(&asked).await.unwrap()
}

/// Asks and gives up soon: the server is stopped.
pub(crate) async fn ask_in_vain(stage: &impl Stage, commands: Vec<TmuxCommand>) -> Unanswered {
    hand_in_vain(stage, None, commands).await
}

pub(crate) async fn hand_in_vain(
    stage: &impl Stage,
    input: Option<&str>,
    commands: Vec<TmuxCommand>,
) -> Unanswered {
    let asked = Invocation {
        input: input.map(str::to_owned),
        deadline: Duration::from_millis(400),
        ..invocation(stage.socket(), commands)
    };
    stage.tmux().call(&asked).await.unwrap_err()
}

/// Hands a text over with the commands.
pub(crate) async fn hand(stage: &impl Stage, text: &str, commands: Vec<TmuxCommand>) -> Answer {
    let asked = Invocation {
        input: Some(text.to_owned()),
        ..invocation(stage.socket(), commands)
    };
    stage.tmux().call(&asked).await.unwrap()
}

pub(crate) fn new_session(number: u64, program: Vec<OsString>) -> TmuxCommand {
    TmuxCommand::NewSession {
        name: name(number),
        columns: 200,
        rows: 50,
        print: vec![
            Field::SessionId,
            Field::PaneId,
            Field::PanePid,
            Field::SessionName,
        ],
        program,
    }
}

/// Makes a session with the options that a delivery needs.
pub(crate) async fn make(stage: &impl Stage, number: u64, program: Vec<OsString>) -> Made {
    make_at(stage, stage.socket(), number, program).await
}

pub(crate) async fn make_at(
    stage: &impl Stage,
    socket: TmuxSocket,
    number: u64,
    program: Vec<OsString>,
) -> Made {
    let target = Target::Name(name(number));
    let set = |scope, setting| TmuxCommand::SetOption {
        target: target.clone(),
        scope,
        setting,
    };
    let commands = vec![
        new_session(number, program),
        set(
            Scope::Session,
            Setting::Ours(OptionName::Epoch, "%s".to_owned()),
        ),
        set(
            Scope::Session,
            Setting::Ours(OptionName::Owner, format!("owner-{number}")),
        ),
        set(
            Scope::Pane,
            Setting::Shown(OptionName::Host, Field::PanePid),
        ),
    ];
    let asked = Invocation {
        start: Start::Allowed,
        ..invocation(socket, commands)
    };
    let answer = stage.tmux().call(&asked).await.unwrap();
    assert_eq!(answer.status, 0, "{answer:?}");
    let line = line(&answer, Marker::Made).unwrap();
    Made {
        name: name(number),
        session: line[0].parse().unwrap(),
        pane: line[1].parse().unwrap(),
        pid: line[2].parse().unwrap(),
    }
}

/// Makes a session whose recorder reads.
pub(crate) async fn make_recorder(stage: &impl Stage, number: u64, manners: Manners) -> Made {
    let label = format!("r{number}");
    let made = make(stage, number, stage.recorder(&label, manners)).await;
    stage.ready(&label).await;
    made
}

/// Makes a session that nobody types into.
pub(crate) async fn make_some(stage: &impl Stage, number: u64) -> Made {
    make_recorder(stage, number, Manners::Brackets).await
}

/// The words of the first line with this marker.
pub(crate) fn line(answer: &Answer, marker: Marker) -> Option<Vec<String>> {
    lines(answer, marker).into_iter().next()
}

pub(crate) fn lines(answer: &Answer, marker: Marker) -> Vec<Vec<String>> {
    let words = answer.output.lines().map(|line| line.split('|'));
    words
        .filter_map(|mut words| {
            (words.next() == Some(marker.as_str())).then(|| words.map(str::to_owned).collect())
        })
        .collect()
}

pub(crate) fn show(target: Target, fields: &[Field]) -> TmuxCommand {
    TmuxCommand::DisplayMessage {
        target: Some(target),
        marker: Marker::Is,
        fields: fields.to_vec(),
    }
}

/// What a session's or a pane's fields show now.
pub(crate) async fn shown(stage: &impl Stage, target: Target, fields: &[Field]) -> Vec<String> {
    let answer = ask(stage, vec![show(target, fields)]).await;
    assert_eq!(answer.status, 0, "{answer:?}");
    line(&answer, Marker::Is).unwrap()
}

/// The names of all sessions.
pub(crate) async fn names(stage: &impl Stage) -> Vec<String> {
    let answer = ask(
        stage,
        vec![TmuxCommand::ListPanes(vec![Field::SessionName])],
    )
    .await;
    let mut names: Vec<String> = lines(&answer, Marker::Pane).into_iter().flatten().collect();
    names.dedup();
    names
}

/// Waits until the session with this name is there, or is not.
pub(crate) async fn wait_for_name(stage: &impl Stage, wanted: &SessionName, there: bool) {
    let give_up = tokio::time::Instant::now() + crate::tmux::PATIENCE;
    while names(stage).await.iter().any(|n| n == wanted.as_str()) != there {
        assert!(
            tokio::time::Instant::now() < give_up,
            "waited in vain for {wanted} to be there: {there}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
