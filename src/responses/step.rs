//! What a turn does next. Pure, and asked between any two things that it does.

/// The most times that one turn asks its model.
pub const MAX_STEPS: u32 = 10;

/// Where a turn is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub is_cancelled: bool,
    /// The model could not say what it wanted.
    pub has_failed: bool,
    /// It has said all, and called nothing.
    pub is_said: bool,
    /// It called more than it may.
    pub is_over: bool,
    /// A client must run what it called.
    pub waits_for_client: bool,
    pub is_late: bool,
    /// How often it was asked.
    pub n_asked: u32,
    /// Calls that are ours to run, and have not run.
    pub n_pending: usize,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: somebody asked to stop.
    Stopped,
    /// Nothing: it ends as the model's last words ended.
    Done,
    /// Nothing: it is cut off, for this reason.
    Cut(&'static str),
    /// The tools.
    Run,
    /// The model.
    Ask,
}

/// Decides.
pub fn next(at: &State) -> Step {
    let is_client_needed = at.waits_for_client && at.n_pending == 0;
    match at {
        it if it.is_cancelled => Step::Stopped,
        it if it.has_failed || it.is_said => Step::Done,
        it if it.is_over && it.n_pending == 0 => Step::Cut("max_tool_calls"),
        _ if is_client_needed => Step::Done,
        it if it.is_late => Step::Cut("run_timeout"),
        it if it.n_asked >= MAX_STEPS => Step::Cut("max_steps"),
        it if it.n_pending > 0 => Step::Run,
        _ => Step::Ask,
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_STEPS;
    use super::State;
    use super::Step;
    use super::next;

    #[test]
    fn the_first_reason_in_the_agreed_order_decides() {
        let mut at = State {
            is_cancelled: true,
            has_failed: true,
            is_said: false,
            is_over: false,
            waits_for_client: true,
            is_late: true,
            n_asked: MAX_STEPS,
            n_pending: 0,
        };

        assert_eq!(next(&at), Step::Stopped);
        at.is_cancelled = false;
        assert_eq!(next(&at), Step::Done);
        at.has_failed = false;
        assert_eq!(
            next(&at),
            Step::Done,
            "the client is asked even when it is late"
        );
        at.is_over = true;
        assert_eq!(next(&at), Step::Cut("max_tool_calls"));
        at.is_over = false;
        at.n_pending = 1;
        assert_eq!(next(&at), Step::Cut("run_timeout"));
        at.is_late = false;
        assert_eq!(next(&at), Step::Cut("max_steps"));
        at.n_asked = 1;
        assert_eq!(next(&at), Step::Run, "what is ours comes before the client");
        at.n_pending = 0;
        at.waits_for_client = false;
        assert_eq!(next(&at), Step::Ask);
    }
}
