//! What can go wrong: answers that are planned to differ from the right one.

use std::time::Duration;

use super::LocalGitHub;
use super::world::{Budget, World};

/// A wrong answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A status without anything being done.
    Status(u16),
    /// The work is done, and then this status is answered.
    StatusAfterwards(u16),
    /// The hourly budget is empty for this long: 403.
    HourlyLimit(Duration),
    /// Too much at once: 403, which names how long to wait, or does not.
    SecondaryLimit(Option<Duration>),
    /// Too much at once: 429.
    TooManyRequests(Option<Duration>),
    /// The right answer without its second half.
    Truncated,
    /// The right list with something that is no object in this place.
    BadElement(usize),
    /// The right list, with each of its objects twice.
    Doubled,
    /// The right list from its end to its beginning.
    Reversed,
    /// The right answer, but late.
    Slow(Duration),
    /// No answer at all.
    Hang,
    /// A redirect to this address.
    Redirect(u16, String),
    /// The right list, whose next page is said to be at this address.
    NextPageAt(String),
}

/// A fault that waits for its request.
#[derive(Debug)]
pub(super) struct Planned {
    method: Option<String>,
    part: String,
    left: u32,
    fault: Fault,
}

impl World {
    /// Takes the fault that is planned for a request, if any.
    pub(super) fn take_fault(&mut self, method: &str, path: &str) -> Option<Fault> {
        let planned = self.faults.iter_mut().find(|planned| {
            planned.left > 0
                && path.contains(&planned.part)
                && planned.method.as_deref().is_none_or(|only| only == method)
        })?;
        planned.left -= 1;
        let fault = planned.fault.clone();
        self.faults.retain(|planned| planned.left > 0);
        Some(fault)
    }
}

impl LocalGitHub {
    /// Answers the next `times` requests whose path and query contain `part` wrongly; `/issues/1` is
    /// also part of `/issues/12` and `/issues/1/comments`.
    pub fn fail(&self, part: &str, times: u32, fault: Fault) {
        self.plan(None, part, times, fault);
    }

    /// The same for one method only.
    pub fn fail_method(&self, method: &str, part: &str, times: u32, fault: Fault) {
        self.plan(Some(method.to_owned()), part, times, fault);
    }

    fn plan(&self, method: Option<String>, part: &str, times: u32, fault: Fault) {
        self.world().faults.push(Planned {
            method,
            part: part.to_owned(),
            left: times,
            fault,
        });
    }

    /// Answers rightly from now on.
    pub fn heal(&self) {
        self.world().faults.clear();
    }

    /// Sets the hourly budget; an empty one answers 403 until the clock's next full hour.
    pub fn set_budget(&self, limit: u64, remaining: u64) {
        self.world().budget = Budget(Some((limit, remaining)));
    }

    /// Has no limits and sends no headers about them, as a GHES by default.
    pub fn without_budget(&self) {
        self.world().budget = Budget(None);
    }

    /// Accepts this token only; None: any, and none.
    pub fn accept_only(&self, token: Option<&str>) {
        self.world().accepted_token = token.map(str::to_owned);
    }

    /// Names the account that the token belongs to, under which writes appear.
    pub fn set_viewer(&self, login: &str) {
        login.clone_into(&mut self.world().viewer);
    }
}
