//! What a turn does next. Pure, and asked between any two things that it does.

/// The most times that one turn asks its model.
pub const MAX_ITERATIONS: u32 = 10;

/// Where a turn is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecisionState {
    pub is_cancelled: bool,
    /// The model could not say what it wanted.
    pub has_failed: bool,
    /// It has said all, and called nothing.
    pub is_answered: bool,
    /// It called more than it may.
    pub exceeds_budget: bool,
    /// A client must run what it called.
    pub waits_for_client: bool,
    pub is_late: bool,
    /// How often it was asked.
    pub n_iterations: u32,
    /// Calls that are ours to run, and have not run.
    pub n_pending: usize,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAction {
    /// Nothing: somebody asked to stop.
    Cancel,
    /// Nothing: it ends as the model's last words ended.
    Finish,
    /// Nothing: it is cut off, for this reason.
    Truncate(&'static str),
    /// The tools.
    RunTools,
    /// The model.
    CallModel,
}

/// Decides.
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
    fn the_first_reason_in_the_agreed_order_decides() {
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
            "the client is asked even when it is late"
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
            "what is ours comes before the client"
        );
        at.n_pending = 0;
        at.waits_for_client = false;
        assert_eq!(next(&at), NextAction::CallModel);
    }
}
