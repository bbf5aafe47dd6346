//! The database in the model: the rows of one conversation. It knows nothing of nodes.

use std::collections::BTreeSet;

/// What the room does with a message while a reply is under way.
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
}

/// A row of `conversation_runs`; its id is its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    pub status: Status,
    pub kind: Kind,
    pub lease: u8,
    pub attempt: u8,
    /// The newest message it has seen; 0: not claimed.
    pub cutoff: u8,
    pub round: u8,
    pub slot: u8,
    /// The tail after which it makes sense; 0: any.
    pub expected_tail: u8,
    /// How many people's messages there were when it was planned.
    pub epoch: u8,
    /// Its heartbeat is too old.
    pub is_silent: bool,
    /// A user got the response that it is stopped.
    pub was_stopped: bool,
    /// A person asked it to end and to keep what it has.
    pub was_asked: bool,
    /// How often it came to an end.
    pub n_ends: u8,
}

/// A message; its `seq` is its place, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Text {
    OfAPerson,
    OfRun(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    Generating,
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

/// One conversation, as its rows say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rows {
    pub texts: Vec<Text>,
    pub runs: Vec<Run>,
    pub round: Option<Round>,
    pub n_rounds: u8,
    /// The run that was planned for each message of a person, with its `seq`.
    pub planned: Vec<(u8, u8)>,
    /// Something was written for a run by one who did not hold it at that instant.
    pub broke_the_fence: bool,
    /// A round was closed because nothing moved it.
    pub was_adrift: bool,
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
        let people = self.texts.iter().filter(|it| **it == Text::OfAPerson);
        people.count() as u8
    }

    /// How many turns auto mode took since the newest message of a person. Who tries a turn again
    /// tries the same one: the second attempt after a crash, or a person by Resume.
    pub fn n_auto_turns(&self, epoch: u8) -> u8 {
        let turns: BTreeSet<_> = self
            .runs
            .iter()
            .filter(|it| it.kind == Kind::AutoMode && it.epoch == epoch)
            .map(|it| (it.round, it.slot))
            .collect();
        turns.len() as u8
    }

    pub fn is_current_turn(&self, id: u8) -> bool {
        let run = self.run(id);
        self.round
            .as_ref()
            .is_some_and(|it| it.id == run.round && it.cursor == run.slot)
    }

    pub fn is_going_on(&self) -> bool {
        let round = self.round.as_ref();
        round.is_some_and(|it| it.state == State::Generating)
    }
}
