//! Decides what an agent loop does next after a model call or tool run. No I/O.

/// The most model calls of one speaker.
pub const MAX_ITERATIONS: u32 = 10;

/// The state that the decision depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecisionState {
    pub is_cancelled: bool,
    /// The model call failed or was cut off.
    pub has_failed: bool,
    /// The answer is complete and contains no tool calls.
    pub is_answered: bool,
    /// The model made more tool calls than allowed.
    pub exceeds_budget: bool,
    /// At least one tool call is for the client.
    pub waits_for_client: bool,
    pub is_late: bool,
    /// The number of model calls so far.
    pub n_iterations: u32,
    /// Server-side calls that have not run yet.
    pub n_pending: usize,
}

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAction {
    /// End: the response was canceled.
    Cancel,
    /// End with the result of the last model call.
    Finish,
    /// End early, for this reason.
    Truncate(&'static str),
    /// Run the server-side tools.
    RunTools,
    /// Call the model again.
    CallModel,
}

/// Returns the next action.
pub fn next(state: &DecisionState) -> NextAction {
    let is_client_needed = state.waits_for_client && state.n_pending == 0;
    match state {
        it if it.is_cancelled => NextAction::Cancel,
        it if it.has_failed || it.is_answered => NextAction::Finish,
        it if it.exceeds_budget && it.n_pending == 0 => NextAction::Truncate("max_tool_calls"),
        _ if is_client_needed => NextAction::Finish,
        it if it.is_late => NextAction::Truncate("run_timeout"),
        it if it.n_iterations >= MAX_ITERATIONS => NextAction::Truncate("max_steps"),
        it if it.n_pending > 0 => NextAction::RunTools,
        _ => NextAction::CallModel,
    }
}

#[cfg(test)]
mod tests {
    use super::{DecisionState, MAX_ITERATIONS, NextAction, next};

    #[test]
    fn the_first_condition_that_applies_decides_the_next_action() {
        let mut at = DecisionState {
            is_cancelled: true,
            has_failed: true,
            is_answered: false,
            exceeds_budget: false,
            waits_for_client: true,
            is_late: true,
            n_iterations: MAX_ITERATIONS,
            n_pending: 0,
        };

        assert_eq!(next(&at), NextAction::Cancel);
        at.is_cancelled = false;
        assert_eq!(next(&at), NextAction::Finish);
        at.has_failed = false;
        assert_eq!(
            next(&at),
            NextAction::Finish,
            "calls for the client take precedence over the time limit"
        );
        at.exceeds_budget = true;
        assert_eq!(next(&at), NextAction::Truncate("max_tool_calls"));
        at.exceeds_budget = false;
        at.n_pending = 1;
        assert_eq!(next(&at), NextAction::Truncate("run_timeout"));
        at.is_late = false;
        assert_eq!(next(&at), NextAction::Truncate("max_steps"));
        at.n_iterations = 1;
        assert_eq!(
            next(&at),
            NextAction::RunTools,
            "server tools run before the response is returned to the client"
        );
        at.n_pending = 0;
        at.waits_for_client = false;
        assert_eq!(next(&at), NextAction::CallModel);
    }
}
