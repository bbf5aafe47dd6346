//! What the database holds of one conversation, and the transactions that change it, each as one
//! step. Nothing here knows of nodes.

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
    /// A person was told that it is stopped.
    pub was_stopped: bool,
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
}

/// What the room is set to.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub n_slots: u8,
    pub auto_budget: Option<u8>,
    pub policy: Policy,
}

/// A run is planned again at most so often, the first time included.
const MOST_ATTEMPTS: u8 = 2;

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

    /// The upsert into the one queued place: the row that is there keeps its id and its lease.
    fn enqueue(&mut self, kind: Kind, attempt: u8, expected_tail: u8) -> u8 {
        let round = self.round.as_ref().expect("runs of this model are turns");
        let plan = Run {
            status: Status::Queued,
            kind,
            lease: 0,
            attempt,
            cutoff: 0,
            round: round.id,
            slot: round.cursor,
            expected_tail,
            epoch: self.epoch(),
            is_silent: false,
            was_stopped: false,
            n_ends: 0,
        };
        match self.in_status(Status::Queued) {
            Some(id) => {
                let lease = self.run(id).lease;
                *self.run_mut(id) = Run { lease, ..plan };
                id
            }
            None => {
                self.runs.push(plan);
                self.runs.len() as u8 - 1
            }
        }
    }

    pub fn end(&mut self, id: u8, status: Status) {
        let run = self.run_mut(id);
        run.status = status;
        run.n_ends += 1;
        run.is_silent = false;
    }

    fn new_round(&mut self, kind: Kind) {
        self.n_rounds += 1;
        self.round = Some(Round {
            id: self.n_rounds,
            kind,
            cursor: 0,
            state: State::Generating,
        });
    }

    fn set_state(&mut self, state: State) {
        if let Some(round) = self.round.as_mut() {
            round.state = state;
        }
    }

    fn rest(&mut self) {
        if self.is_going_on() {
            self.set_state(State::Paused);
        }
    }

    pub fn is_going_on(&self) -> bool {
        let round = self.round.as_ref();
        round.is_some_and(|it| it.state == State::Generating)
    }

    // ---- transactions ----

    /// A person's message is stored. Gives its `seq`.
    pub fn append_post(&mut self, room: &Room) -> u8 {
        self.texts.push(Text::OfAPerson);
        if room.policy == Policy::Restart
            && let Some(running) = self.in_status(Status::Running)
        {
            self.run_mut(running).was_stopped = true;
            self.end(running, Status::Canceled);
        }
        self.tail()
    }

    /// The plan for a person's message: what was is superseded, a new round answers.
    pub fn plan_post(&mut self, seq: u8) {
        self.new_round(Kind::UserTurn);
        let run = self.enqueue(Kind::UserTurn, 1, 0);
        self.planned.push((seq, run));
    }

    /// Everything rests. `only_asks`: the running run is flagged, not ended.
    pub fn stop(&mut self, only_asks: bool) {
        if let Some(running) = self.in_status(Status::Running) {
            self.run_mut(running).was_stopped = true;
            if !only_asks {
                self.end(running, Status::Canceled);
            }
        }
        if let Some(queued) = self.in_status(Status::Queued) {
            self.end(queued, Status::Canceled);
        }
        self.rest();
    }

    /// The cursor's slot gets its turn again.
    pub fn resume(&mut self) {
        self.set_state(State::Generating);
        let round = self.round.as_ref().expect("a round rests");
        self.enqueue(round.kind, 1, 0);
    }

    /// Takes a run that may be taken; `cutoff` when it was read before.
    pub fn claim(&mut self, id: u8, cutoff: Option<u8>) -> u8 {
        let tail = self.tail();
        let run = self.run_mut(id);
        run.status = Status::Running;
        run.lease += 1;
        run.cutoff = cutoff.unwrap_or(tail);
        run.is_silent = false;
        run.lease
    }

    /// The checks at the claim: a run whose tail is another makes no sense any more.
    pub fn is_out_of_date(&self, id: u8) -> bool {
        let expected = self.run(id).expected_tail;
        expected != 0 && expected != self.tail()
    }

    pub fn pass_over(&mut self, id: u8, room: &Room) {
        self.end(id, Status::Skipped);
        if self.is_current_turn(id) {
            let kind = self.run(id).kind;
            self.advance(kind, room);
        }
    }

    /// Every write on behalf of a run goes past here: was it theirs to write?
    fn as_holder(&mut self, id: u8, lease: u8) {
        self.broke_the_fence |= !self.is_held(id, lease);
    }

    /// The text becomes a message. What follows is [`Rows::follow`]'s.
    pub fn finish(&mut self, id: u8, lease: u8) {
        self.as_holder(id, lease);
        self.end(id, Status::Succeeded);
        self.texts.push(Text::OfRun(id));
    }

    /// What follows from a run that succeeded.
    pub fn follow(&mut self, id: u8, room: &Room) {
        if self.is_current_turn(id) {
            let kind = self.run(id).kind;
            self.advance(kind, room);
        }
    }

    pub fn fail(&mut self, id: u8, lease: u8) {
        self.as_holder(id, lease);
        self.end(id, Status::Failed);
        if self.is_current_turn(id) {
            self.set_state(State::Failed);
        }
    }

    /// A closing node gives a run back, or ends it where nobody would go on with it.
    pub fn hand_back(&mut self, id: u8, lease: u8) {
        self.as_holder(id, lease);
        let rests = self.is_current_turn(id) && !self.is_going_on();
        if self.in_status(Status::Queued).is_some() || rests {
            return self.end(id, Status::Canceled);
        }
        let run = self.run_mut(id);
        run.status = Status::Queued;
        run.cutoff = 0;
        run.is_silent = false;
    }

    /// A run whose heartbeat stopped: it failed, and its turn is planned once more.
    pub fn abandon(&mut self, id: u8) {
        self.end(id, Status::Failed);
        if self.in_status(Status::Queued).is_some() || !self.is_current_turn(id) {
            return;
        }
        let (kind, attempt) = (self.run(id).kind, self.run(id).attempt);
        if attempt < MOST_ATTEMPTS && self.is_going_on() {
            self.enqueue(kind, attempt + 1, 0);
        } else {
            self.set_state(State::Failed);
        }
    }

    /// The naive way: the row is queued again.
    pub fn put_back(&mut self, id: u8) {
        let run = self.run_mut(id);
        run.status = Status::Queued;
        run.attempt += 1;
        run.cutoff = 0;
        run.is_silent = false;
    }

    /// A round that nothing moves is closed.
    pub fn close_round(&mut self) {
        self.round = None;
        self.was_adrift = true;
    }

    /// The next slot, or the end of the round and what auto mode makes of it.
    fn advance(&mut self, kind: Kind, room: &Room) {
        let Some(round) = self.round.as_mut() else {
            return;
        };
        let expected = self.texts.len() as u8;
        let rested = round.state != State::Generating;
        round.cursor += 1;
        let is_over = round.cursor == room.n_slots;
        let spent = self.n_auto_turns(self.epoch());
        let may = room.auto_budget.is_none_or(|it| spent < it);
        if !is_over && (may || kind == Kind::UserTurn) {
            if !rested {
                self.enqueue(kind, 1, expected);
            }
            return;
        }
        self.round = None;
        if may && !rested && self.in_status(Status::Queued).is_none() {
            self.new_round(Kind::AutoMode);
            self.enqueue(Kind::AutoMode, 1, expected);
        }
    }
}
