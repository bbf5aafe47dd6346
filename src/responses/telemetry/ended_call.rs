//! Defines what the log line of a call states about its end, and combines the ends of several tasks that
//! execute one call: the choices of a chat completion.

use std::sync::Arc;

use parking_lot::Mutex;
use responses_api::status::ResponseStatus;

/// The numbers of model calls and tool calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    pub n_model_calls: u32,
    /// The calls that the model requested, both of the client's and of the server's tools.
    pub n_tool_calls: u32,
}

/// How a call has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedCall {
    pub status: ResponseStatus,
    /// Why it is incomplete, or the code of its error.
    pub reason: Option<String>,
    pub duration_ms: Option<i64>,
    pub first_token_ms: Option<i64>,
    pub input_tokens: Option<i64>,
    pub cached_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub counts: CallCounts,
    /// The client disconnected, which ended the call.
    pub has_client_left: bool,
}

/// The ends of the tasks that execute one call. Cheap to clone; clones share state.
#[derive(Clone, Debug)]
pub struct SharedEnd(Arc<Mutex<EndedTasks>>);

#[derive(Debug)]
struct EndedTasks {
    n_running: usize,
    ended: Option<EndedCall>,
}

impl SharedEnd {
    /// Creates the end of a call that this number of tasks executes.
    pub fn new(n_tasks: usize) -> Self {
        Self(Arc::new(Mutex::new(EndedTasks {
            n_running: n_tasks,
            ended: None,
        })))
    }

    /// Adds the end of a task. Returns the end of the call if it was the last task.
    pub fn add(&self, ended: EndedCall) -> Option<EndedCall> {
        let mut tasks = self.0.lock();
        tasks.n_running = tasks.n_running.saturating_sub(1);
        let all = match tasks.ended.take() {
            Some(earlier) => earlier.and(ended),
            None => ended,
        };
        match tasks.n_running {
            0 => Some(all),
            _ => {
                tasks.ended = Some(all);
                None
            }
        }
    }
}

impl EndedCall {
    /// Returns the end of a call that both tasks executed. It has failed if both have, and its prompt counts
    /// once.
    fn and(self, other: Self) -> Self {
        let (status, reason) = match self.status {
            ResponseStatus::Failed => (other.status, other.reason),
            _ => (self.status, self.reason),
        };
        let sum = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        let add = u32::saturating_add;
        Self {
            status,
            reason,
            duration_ms: self.duration_ms.max(other.duration_ms),
            first_token_ms: match (self.first_token_ms, other.first_token_ms) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            input_tokens: self.input_tokens.max(other.input_tokens),
            cached_tokens: self.cached_tokens.max(other.cached_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
            counts: CallCounts {
                n_model_calls: add(self.counts.n_model_calls, other.counts.n_model_calls),
                n_tool_calls: add(self.counts.n_tool_calls, other.counts.n_tool_calls),
            },
            has_client_left: self.has_client_left || other.has_client_left,
        }
    }
}

#[cfg(test)]
mod tests {
    use responses_api::status::ResponseStatus;

    use super::{CallCounts, EndedCall, SharedEnd};

    fn ended(status: ResponseStatus, first_token_ms: i64, output_tokens: i64) -> EndedCall {
        EndedCall {
            status,
            reason: None,
            duration_ms: Some(first_token_ms + 10),
            first_token_ms: Some(first_token_ms),
            input_tokens: Some(7),
            cached_tokens: Some(0),
            output_tokens: Some(output_tokens),
            counts: CallCounts {
                n_model_calls: 1,
                n_tool_calls: 2,
            },
            has_client_left: false,
        }
    }

    #[test]
    fn several_tasks_have_one_end_with_their_sums_and_one_prompt() {
        let end = SharedEnd::new(3);

        assert_eq!(end.add(ended(ResponseStatus::Failed, 30, 1)), None);
        assert_eq!(end.add(ended(ResponseStatus::Completed, 20, 2)), None);
        let all = end.add(ended(ResponseStatus::Failed, 40, 3)).unwrap();

        let expected = EndedCall {
            duration_ms: Some(50),
            counts: CallCounts {
                n_model_calls: 3,
                n_tool_calls: 6,
            },
            ..ended(ResponseStatus::Completed, 20, 6)
        };
        assert_eq!(all, expected);
    }

    #[test]
    fn a_call_has_failed_if_all_of_its_tasks_have() {
        let end = SharedEnd::new(2);
        end.add(ended(ResponseStatus::Failed, 1, 1));

        let all = end.add(ended(ResponseStatus::Failed, 1, 1)).unwrap();

        assert_eq!(all.status, ResponseStatus::Failed);
    }
}
