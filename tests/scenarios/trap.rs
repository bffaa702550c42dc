//! A write to the database that never ends, so that a test can kill whoever makes it.
//!
//! The trap is a trigger in the database file: it counts for hours inside the transaction, which then
//! holds the lock, and is rolled back when its process is killed.

use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::runtime::Runtime;

use crate::support::{SOON, Scratch, poll};

/// How long the lock is held before it is the trap that holds it.
const HELD: Duration = Duration::from_millis(300);

/// The database of a scratch world, as a test reads and spoils it.
pub(crate) struct Database {
    runtime: Runtime,
    connection: Option<SqliteConnection>,
}

impl Database {
    pub(crate) fn of(scratch: &Scratch) -> Self {
        let runtime = Runtime::new().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(scratch.state_root().join("loop.db"))
            .busy_timeout(Duration::ZERO);
        let connection = runtime.block_on(options.connect()).unwrap();
        Self {
            runtime,
            connection: Some(connection),
        }
    }

    fn execute(&mut self, statement: String) -> Result<(), sqlx::Error> {
        let connection = self.connection.as_mut().unwrap();
        let statement = sqlx::query(sqlx::AssertSqlSafe(statement));
        self.runtime
            .block_on(statement.execute(connection))
            .map(drop)
    }

    /// Executes a statement, however long others write.
    pub(crate) fn change(&mut self, statement: &str) {
        let mut last = None;
        let done = poll(SOON, || match self.execute(statement.to_owned()) {
            Ok(()) => Some(()),
            Err(error) => {
                last = Some(error);
                None
            }
        });
        assert!(done.is_some(), "{statement}: {last:?}");
    }

    /// Asks for one number.
    pub(crate) fn number(&mut self, question: &str) -> i64 {
        let connection = self.connection.as_mut().unwrap();
        let question = sqlx::query_scalar(sqlx::AssertSqlSafe(question.to_owned()));
        self.runtime
            .block_on(question.fetch_one(connection))
            .unwrap()
    }

    /// Lets the write that `when` describes, such as `INSERT ON sessions`, never end.
    pub(crate) fn set_trap(&mut self, when: &str) {
        self.change(&format!(
            "CREATE TRIGGER trap BEFORE {when} BEGIN SELECT count(*) FROM (WITH RECURSIVE \
             n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000000000000) SELECT x FROM n); END"
        ));
    }

    /// Waits until somebody is in the trap: nothing else holds the lock for so long.
    pub(crate) fn wait_for_prey(&mut self) {
        let mut since = Instant::now();
        let caught = poll(SOON, || {
            if self.execute("BEGIN IMMEDIATE".to_owned()).is_ok() {
                self.execute("ROLLBACK".to_owned()).unwrap();
                since = Instant::now();
            }
            (since.elapsed() >= HELD).then_some(())
        });
        assert!(
            caught.is_some(),
            "nobody made the write that was waited for"
        );
    }

    /// Takes the trap away, once nobody is in it any more.
    pub(crate) fn remove_trap(&mut self) {
        self.change("DROP TRIGGER trap");
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.runtime.block_on(connection.close()).ok();
        }
    }
}
