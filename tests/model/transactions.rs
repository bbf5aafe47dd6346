//! The transactions that change the rows, each as one step.

use crate::rows::{Kind, Policy, Round, Rows, Run, State, Status, Text};

/// The limit of attempts of a run, including the first.
const MAX_ATTEMPTS: u8 = 2;

/// The settings of the space.
#[derive(Clone, Copy, Debug)]
pub struct SpaceRules {
    pub n_slots: u8,
    /// The slot of a person in a round that a message started.
    pub human_slot: Option<u8>,
    pub auto_budget: Option<u8>,
    pub policy: Policy,
}

impl Rows {
    /// Stores a message of a user; returns its `seq`.
    pub fn append_post(&mut self, rules: &SpaceRules) -> u8 {
        self.texts.push(Text::ByUser);
        self.is_stopped = false;
        if let Some(queued) = self.in_status(Status::Queued)
            && self.run(queued).kind == Kind::Continue
        {
            self.end(queued, Status::Canceled);
        }
        let keeps_round = self.keeps_round(rules);
        if rules.policy == Policy::Restart
            && let Some(running) = self.in_status(Status::Running)
        {
            self.run_mut(running).was_stopped = true;
            self.end(running, Status::Canceled);
            if keeps_round && self.is_current_turn(running) && self.is_generating() {
                self.enqueue(Kind::UserTurn, 1, self.tail());
            }
        }
        if keeps_round && let Some(queued) = self.in_status(Status::Queued) {
            let tail = self.tail();
            let run = self.run_mut(queued);
            run.expected_tail = if run.expected_tail == 0 { 0 } else { tail };
        }
        self.tail()
    }

    /// Whether a post leaves the active round as it is: people take turns in it.
    pub fn keeps_round(&self, rules: &SpaceRules) -> bool {
        let round = self.round.as_ref();
        rules.human_slot.is_some() && round.is_some_and(|it| it.kind == Kind::UserTurn)
    }

    /// The person for whom the round waits posts: the next slot follows.
    pub fn take_turn(&mut self, rules: &SpaceRules) {
        let (round, slot) = self.awaited_turn().expect("the round waits");
        self.append_post(rules);
        self.human_turns.push((round, slot, true));
        self.advance(Kind::UserTurn, rules);
    }

    /// The deadline of a person's turn has passed: the next slot follows. `is_checked`: whether the round
    /// still waits for this turn is compared under the lock.
    pub fn time_out(&mut self, turn: (u8, u8), is_checked: bool, rules: &SpaceRules) {
        let is_active = self.round.as_ref().is_some_and(|it| it.id == turn.0);
        let is_awaited = self.awaited_turn() == Some(turn);
        if is_awaited || is_active && !is_checked {
            self.human_turns.push((turn.0, turn.1, false));
            self.advance(Kind::UserTurn, rules);
        }
    }

    /// Plans the reply to a user's message: a new round supersedes the previous one.
    pub fn plan_post(&mut self, seq: u8, rules: &SpaceRules) {
        self.new_round(Kind::UserTurn);
        if rules.human_slot == Some(0) {
            if let Some(queued) = self.in_status(Status::Queued) {
                self.end(queued, Status::Canceled);
            }
            return self.set_state(State::Waiting);
        }
        let run = self.enqueue(Kind::UserTurn, 1, 0);
        self.planned.push((seq, run));
    }

    /// Plans a run that continues the tail; it replaces the round and the queued run.
    pub fn continue_tail(&mut self) {
        self.is_stopped = false;
        self.round = None;
        self.enqueue_continue(self.tail(), 1);
    }

    /// Stops the conversation. With `only_flags` the running run is flagged, not ended.
    pub fn stop(&mut self, only_flags: bool) {
        if let Some(running) = self.in_status(Status::Running) {
            self.run_mut(running).was_stopped = true;
            if !only_flags {
                self.end(running, Status::Canceled);
            }
        }
        self.cancel_queued_and_pause();
    }

    /// The same, but the running run is requested to end and to keep its partial text.
    pub fn stop_keeping(&mut self) {
        if let Some(running) = self.in_status(Status::Running) {
            self.run_mut(running).keeps_partial = true;
        }
        self.cancel_queued_and_pause();
    }

    fn cancel_queued_and_pause(&mut self) {
        if let Some(queued) = self.in_status(Status::Queued) {
            self.end(queued, Status::Canceled);
        }
        self.pause_round();
        self.is_stopped = true;
    }

    /// Plans the current slot again.
    pub fn resume(&mut self, rules: &SpaceRules) {
        self.is_stopped = false;
        self.set_state(State::Generating);
        let round = self.round.as_ref().expect("a round is paused");
        let kind = round.kind;
        self.start_slot(kind, 0, rules);
    }

    /// Claims a run that may start; `cutoff` is the one read before, if any.
    pub fn claim(&mut self, id: u8, cutoff: Option<u8>) -> u8 {
        let tail = self.tail();
        let run = self.run_mut(id);
        run.status = Status::Running;
        run.lease += 1;
        run.cutoff = cutoff.unwrap_or(tail);
        run.is_stale = false;
        run.lease
    }

    /// The check at the claim: a run is outdated if the tail has changed.
    pub fn is_out_of_date(&self, id: u8) -> bool {
        let expected = self.run(id).expected_tail;
        expected != 0 && expected != self.tail()
    }

    pub fn skip(&mut self, id: u8, rules: &SpaceRules) {
        self.end(id, Status::Skipped);
        if self.is_current_turn(id) {
            self.advance(self.run(id).kind, rules);
        }
    }

    /// Called for every write for a run: records whether the writer held the lease.
    fn record_writer(&mut self, id: u8, lease: u8) {
        self.wrote_without_lease |= !self.is_held(id, lease);
    }

    /// Stores the text as a message; [`Rows::plan_next`] plans what follows.
    pub fn finish(&mut self, id: u8, lease: u8) {
        self.record_writer(id, lease);
        let end = match self.run(id).keeps_partial {
            true => Status::Canceled,
            false => Status::Succeeded,
        };
        self.end(id, end);
        match self.run(id).kind {
            Kind::Continue => self.versions.push((self.run(id).expected_tail, id)),
            _ => self.texts.push(Text::ByRun(id)),
        }
    }

    /// Plans what follows a text: the next slot, or auto mode at the end of the round.
    /// `respects_stop`: whether a stop or a paused round is respected.
    pub fn plan_next(&mut self, id: u8, respects_stop: bool, rules: &SpaceRules) {
        if !self.is_current_turn(id) {
            return;
        }
        let is_paused = respects_stop && !self.is_generating();
        let keeps_partial = respects_stop && self.run(id).keeps_partial;
        self.advance(self.run(id).kind, rules);
        if self.round.is_none() && !keeps_partial {
            self.continue_auto_mode(is_paused, rules);
        }
    }

    pub fn fail(&mut self, id: u8, lease: u8) {
        self.record_writer(id, lease);
        self.end(id, Status::Failed);
        if self.is_current_turn(id) {
            self.set_state(State::Failed);
        }
    }

    /// A closing node releases a run, or ends it if no node would continue it.
    pub fn release_run(&mut self, id: u8, lease: u8) {
        self.record_writer(id, lease);
        let is_paused = self.is_current_turn(id) && !self.is_generating();
        let is_over = is_paused || self.run(id).keeps_partial;
        if self.in_status(Status::Queued).is_some() || is_over {
            return self.end(id, Status::Canceled);
        }
        let run = self.run_mut(id);
        run.status = Status::Queued;
        run.cutoff = 0;
        run.is_stale = false;
    }

    /// Fails a run whose heartbeat stopped, and plans its turn once more.
    pub fn expire_lease(&mut self, id: u8) {
        if self.run(id).keeps_partial {
            return self.end(id, Status::Canceled);
        }
        self.end(id, Status::Failed);
        if self.in_status(Status::Queued).is_some() {
            return;
        }
        let (kind, attempt) = (self.run(id).kind, self.run(id).attempt);
        if kind == Kind::Continue && attempt < MAX_ATTEMPTS {
            return self.enqueue_continue(self.run(id).expected_tail, attempt + 1);
        }
        if !self.is_current_turn(id) {
            return;
        }
        if attempt < MAX_ATTEMPTS && self.is_generating() {
            self.enqueue(kind, attempt + 1, 0);
        } else {
            self.set_state(State::Failed);
        }
    }

    /// The flawed recovery: the same row is queued again.
    pub fn requeue(&mut self, id: u8) {
        let run = self.run_mut(id);
        run.status = Status::Queued;
        run.attempt += 1;
        run.cutoff = 0;
        run.is_stale = false;
    }

    /// Closes a round without a run.
    pub fn close_round(&mut self) {
        self.round = None;
        self.had_stalled_round = true;
    }

    /// Plans the next slot, or ends the round.
    fn advance(&mut self, kind: Kind, rules: &SpaceRules) {
        let expected = self.tail();
        let may_take_a_turn = kind == Kind::UserTurn || self.has_turns_left(rules);
        let Some(round) = self.round.as_mut() else {
            return;
        };
        round.cursor += 1;
        if round.cursor == rules.n_slots || !may_take_a_turn {
            self.round = None;
        } else if matches!(round.state, State::Generating | State::Waiting) {
            self.start_slot(kind, expected, rules);
        }
    }

    /// Starts the slot at the cursor: waits for a person, or queues a run.
    fn start_slot(&mut self, kind: Kind, expected_tail: u8, rules: &SpaceRules) {
        let cursor = self.round.as_ref().map(|it| it.cursor);
        if kind == Kind::UserTurn && cursor == rules.human_slot {
            return self.set_state(State::Waiting);
        }
        self.set_state(State::Generating);
        self.enqueue(kind, 1, expected_tail);
    }

    /// Plans a turn of auto mode if one is left; after a paused round it is paused too.
    fn continue_auto_mode(&mut self, is_paused: bool, rules: &SpaceRules) {
        if !self.has_turns_left(rules) || self.in_status(Status::Queued).is_some() {
            return;
        }
        self.new_round(Kind::AutoMode);
        match is_paused {
            true => self.set_state(State::Paused),
            false => _ = self.enqueue(Kind::AutoMode, 1, self.tail()),
        }
    }

    fn has_turns_left(&self, rules: &SpaceRules) -> bool {
        let spent = self.n_auto_turns(self.epoch());
        rules.auto_budget.is_none_or(|it| spent < it)
    }

    /// Upserts the queued run: an existing row keeps its id and its lease.
    fn enqueue(&mut self, kind: Kind, attempt: u8, expected_tail: u8) -> u8 {
        let round = self.round.as_ref();
        let round = round.expect("only a continue belongs to no round");
        let place = (round.id, round.cursor);
        self.upsert(kind, attempt, expected_tail, place)
    }

    fn enqueue_continue(&mut self, target: u8, attempt: u8) {
        self.upsert(Kind::Continue, attempt, target, (0, 0));
    }

    fn upsert(
        &mut self,
        kind: Kind,
        attempt: u8,
        expected_tail: u8,
        (round, slot): (u8, u8),
    ) -> u8 {
        let plan = Run {
            status: Status::Queued,
            kind,
            lease: 0,
            attempt,
            cutoff: 0,
            round,
            slot,
            expected_tail,
            epoch: self.epoch(),
            is_stale: false,
            was_stopped: false,
            keeps_partial: false,
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
        run.is_stale = false;
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

    fn pause_round(&mut self) {
        if self.is_generating() || self.awaited_turn().is_some() {
            self.set_state(State::Paused);
        }
    }
}
