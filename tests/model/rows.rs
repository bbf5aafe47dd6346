//! The database in the model: the rows of one conversation, without the nodes.

use std::collections::BTreeSet;

/// How the space handles a message during a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Queue,
    Restart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    Queued,
    Running,
    Succeeded,
    Failed,
    Canceled,
    Skipped,
}

impl Status {
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    UserTurn,
    AutoMode,
    /// Its text becomes a version of the tail, and belongs to no round.
    Continue,
}

/// A row of `conversation_runs`; its id is its index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    pub status: Status,
    pub kind: Kind,
    pub lease: u8,
    pub attempt: u8,
    /// The newest message that it has seen; 0 if it is not claimed.
    pub cutoff: u8,
    pub round: u8,
    pub slot: u8,
    /// The tail that it requires; 0 for any.
    pub expected_tail: u8,
    /// The number of user messages when it was planned.
    pub epoch: u8,
    /// Its heartbeat is overdue.
    pub is_stale: bool,
    /// A user got the response that it is stopped.
    pub was_stopped: bool,
    /// A user requested it to end and to keep its partial text.
    pub keeps_partial: bool,
    /// How often it ended.
    pub n_ends: u8,
}

/// A message; its `seq` is its index, starting at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Text {
    ByUser,
    ByRun(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    Generating,
    /// For the message of a person.
    Waiting,
    Paused,
    Failed,
}

/// The active round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Round {
    pub id: u8,
    pub kind: Kind,
    pub cursor: u8,
    pub state: State,
}

/// The rows of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rows {
    pub texts: Vec<Text>,
    /// The versions that continues have added: the `seq` of the message, and the run.
    pub versions: Vec<(u8, u8)>,
    pub runs: Vec<Run>,
    pub round: Option<Round>,
    pub n_rounds: u8,
    /// The run that was planned for each user message, with its `seq`.
    pub planned: Vec<(u8, u8)>,
    /// The turns of people that have ended: round, slot, and whether the person spoke.
    pub human_turns: Vec<(u8, u8, bool)>,
    /// A write for a run was made by a node that did not hold its lease.
    pub wrote_without_lease: bool,
    /// A round was closed because it had no run.
    pub had_stalled_round: bool,
    /// A user pressed stop, and no user has acted since.
    pub is_stopped: bool,
}

impl Rows {
    pub fn tail(&self) -> u8 {
        self.texts.len() as u8
    }

    pub fn in_status(&self, status: Status) -> Option<u8> {
        let found = self.runs.iter().position(|it| it.status == status);
        found.map(|it| it as u8)
    }

    pub fn run(&self, id: u8) -> &Run {
        &self.runs[usize::from(id)]
    }

    pub fn run_mut(&mut self, id: u8) -> &mut Run {
        &mut self.runs[usize::from(id)]
    }

    pub fn is_held(&self, id: u8, lease: u8) -> bool {
        let run = self.run(id);
        run.status == Status::Running && run.lease == lease
    }

    pub fn epoch(&self) -> u8 {
        let user_messages = self.texts.iter().filter(|it| **it == Text::ByUser);
        user_messages.count() as u8
    }

    /// How many turns auto mode used since the newest user message. A second attempt after a crash
    /// or by Resume is the same turn.
    pub fn n_auto_turns(&self, epoch: u8) -> u8 {
        let turns: BTreeSet<_> = self
            .runs
            .iter()
            .filter(|it| it.kind == Kind::AutoMode && it.epoch == epoch)
            .map(|it| (it.round, it.slot))
            .collect();
        turns.len() as u8
    }

    /// The newest message was written by a run.
    pub fn has_ai_tail(&self) -> bool {
        matches!(self.texts.last(), Some(Text::ByRun(_)))
    }

    pub fn is_current_turn(&self, id: u8) -> bool {
        let run = self.run(id);
        self.round
            .as_ref()
            .is_some_and(|it| it.id == run.round && it.cursor == run.slot)
    }

    /// The turn of a person for which the round waits: round and slot.
    pub fn awaited_turn(&self) -> Option<(u8, u8)> {
        let round = self.round.as_ref();
        let waiting = round.filter(|it| it.state == State::Waiting);
        waiting.map(|it| (it.id, it.cursor))
    }

    pub fn is_generating(&self) -> bool {
        let round = self.round.as_ref();
        round.is_some_and(|it| it.state == State::Generating)
    }
}
