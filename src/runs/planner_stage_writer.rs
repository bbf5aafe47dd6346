//! The stage's writer: carries out a plan's changes in memory, each only from the state in which
//! the real statement would win, and tells them in words.

use crate::clock::Timestamp;
use crate::conversations::message;
use crate::conversations::timeline;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::ids::ProviderId;
use crate::llm::registry::ProviderKind;
use crate::providers::provider;
use crate::rounds::round;
use crate::runs::plan;
use crate::runs::plan::Change;
use crate::runs::plan::Enqueue;
use crate::runs::plan::NewMessage;
use crate::runs::plan::Plan;
use crate::runs::plan::Reference;
use crate::runs::planner::stage::Stage;
use crate::runs::queue;
use crate::runs::run;
use crate::runs::run::RunStatus;
use crate::runs::situation::Round;
use crate::spaces::membership::CopilotMode;
use serde::Serialize;

impl Stage {
    pub(super) fn apply(&mut self, change: Change) {
        match change {
            Change::Append(new) => self.append(new),
            Change::SetVisibility {
                message,
                visibility,
            } => self.message(message).visibility = visibility,
            Change::SetContent(edit) => self.rewrite(edit.message, &edit.content),
            Change::HideTurn(turn) => self.hide_turn(&turn),
            Change::AddSwipe(text) => self.add_swipe(text),
            Change::ShowSwipe(swipe) => self.show_swipe(swipe),
            Change::Keep(..) | Change::Remember(_) => {}
            Change::CopilotStep(seat) => self.spend_copilot_step(seat),
            Change::AutoModeTurns(n) => self.s.conversation.auto_mode_turns = n,
            Change::Claim(run) => self.claim(&run),
            Change::SkipQueued(run) => self.leave_queue(run, RunStatus::Skipped),
            Change::FailQueued(run, error) => {
                let error = Some(error);
                self.leave_queue(run::Model { error, ..run }, RunStatus::Failed);
            }
            Change::CancelQueued(run) => self.leave_queue(run, RunStatus::Canceled),
            Change::AskCancel(run) => {
                let now = self.now;
                let running = self.s.running.as_mut().expect("it runs");
                assert_eq!(running.id, run.id);
                running.cancel_requested_at = Some(now);
                running.keep_partial = true;
            }
            Change::Finish { run, end } | Change::Expire { run, end, .. } => {
                let running = self.s.running.take().expect("it runs");
                assert_eq!((running.id, running.lease), (run.id, run.lease));
                self.end(run, end.status());
            }
            Change::HandBack(run) => self.hand_back(&run),
            round => self.change_round(round),
        }
    }

    fn spend_copilot_step(&mut self, seat: MembershipId) {
        let seat = self.seat(seat);
        match seat.copilot_remaining_steps {
            Some(left) if left > 1 => seat.copilot_remaining_steps = Some(left - 1),
            _ => {
                seat.copilot_mode = CopilotMode::None;
                seat.copilot_remaining_steps = None;
                seat.copilot_conversation_id = None;
            }
        }
    }

    fn append(&mut self, new: NewMessage) {
        let seq = self.s.conversation.last_seq + 1;
        self.s.conversation.last_seq = seq;
        let id = self.s.conversation.id;
        let mut row = timeline::new_model(id, new.author, new.role, new.content, self.now);
        (row.id, row.seq) = (MessageId(seq), seq);
        row.conversation_run_id = new.run;
        self.s.tail = Some(row.clone());
        self.messages.push(row);
    }

    pub(super) fn message(&mut self, id: MessageId) -> &mut message::Model {
        let mut messages = self.messages.iter_mut();
        messages.find(|it| it.id == id).expect("a message")
    }

    fn claim(&mut self, run: &run::Model) {
        let mut queued = self.s.queued.take().expect("it is queued");
        assert_eq!(queued.id, run.id);
        assert!(self.s.running.is_none(), "I1: another run runs");
        queued.status = RunStatus::Running;
        queued.lease += 1;
        queued.started_at = Some(self.now);
        queued.cutoff_seq = Some(self.s.conversation.last_seq);
        self.s.running = Some(queued);
    }

    fn leave_queue(&mut self, run: run::Model, status: RunStatus) {
        let queued = self.s.queued.take().expect("it is queued");
        assert_eq!(queued.id, run.id);
        self.end(run, status);
    }

    fn end(&mut self, mut run: run::Model, status: RunStatus) {
        let before = self.ended.iter().find(|it| it.id == run.id);
        assert!(before.is_none(), "a run ends twice: {before:?}");
        run.status = status;
        run.finished_at = Some(self.now);
        let is_canceled = status == RunStatus::Canceled;
        assert_eq!(run.canceled_because.is_some(), is_canceled, "{run:?}");
        if run.canceled_because == Some(run::RunCancelReason::SupersededByMessage) {
            run.superseded_by_message_id = self.resolve(Reference::Appended);
        }
        self.s.space.tokens_used += run.usage.map_or(0, run::Usage::total);
        self.ended.push(run);
    }

    fn hand_back(&mut self, run: &run::Model) {
        let mut running = self.s.running.take().expect("it runs");
        assert_eq!((running.id, running.lease), (run.id, run.lease));
        assert!(self.s.queued.is_none(), "I1: the queued place is taken");
        running.status = RunStatus::Queued;
        (running.started_at, running.cutoff_seq) = (None, None);
        running.usage = run.usage;
        self.s.queued = Some(running);
    }

    fn change_round(&mut self, change: Change) {
        if let Change::NewRound {
            id,
            kind,
            trigger,
            seed,
            slots,
        } = change
        {
            assert!(self.s.round.is_none(), "I1: another round is active");
            let mut row = round::blank(id, self.s.conversation.id, kind, seed, self.now);
            row.trigger_message_id = self.resolve(trigger);
            let slots = plan::slots(id, 0, slots);
            self.s.round = Some(Round { row, slots });
            return;
        }
        let round = self.s.round.as_mut().expect("a round is active");
        match change {
            Change::EndRound { id, .. } => {
                assert_eq!(round.row.id, id);
                self.s.round = None;
            }
            Change::MoveRound { id, state, cursor } => {
                assert_eq!(round.row.id, id);
                assert!(cursor >= round.row.cursor, "a cursor never goes back");
                (round.row.state, round.row.cursor) = (state, cursor);
            }
            Change::ReplaceSlots {
                round: id,
                from,
                slots,
            } => {
                assert_eq!(round.row.id, id);
                round.slots.retain(|it| it.position < from);
                round.slots.extend(plan::slots(id, from, slots));
            }
            Change::MarkSlot {
                round: id,
                position,
                status,
                ..
            } => {
                assert_eq!(round.row.id, id);
                let mut slots = round.slots.iter_mut();
                let slot = slots.find(|it| it.position == position);
                slot.expect("a slot").status = status;
            }
            other => panic!("no change of a round: {other:?}"),
        }
    }

    pub(super) fn enqueue(&mut self, enqueue: Enqueue) {
        let mut run = enqueue.run;
        assert_eq!(run.status, RunStatus::Queued);
        self.s.conversation.last_run_seq += 1;
        run.run_seq = self.s.conversation.last_run_seq;
        run.debug.trigger_message_id = enqueue.trigger.and_then(|it| self.resolve(it));
        run.debug.expected_last_message_id = enqueue.expected_tail.and_then(|it| self.resolve(it));
        if let Some(present) = self.s.queued.take() {
            // The upsert: the row stays, the plan is the new one's.
            run = run::Model {
                id: present.id,
                created_at: present.created_at,
                lease: present.lease,
                cancel_requested_at: present.cancel_requested_at,
                keep_partial: present.keep_partial,
                ..run
            };
        }
        self.s.queued = Some(run);
    }

    fn resolve(&self, reference: Reference) -> Option<MessageId> {
        match reference {
            Reference::Message(id) => Some(id),
            Reference::Appended => self.messages.last().map(|it| it.id),
        }
    }

    /// A plan in words: what ends, what changes, and what is queued.
    pub fn describe(&self, plan: &Plan) -> Vec<String> {
        let changes = plan.changes.iter().map(|it| self.tell(it));
        let queued = plan.enqueue.iter().map(|it| self.tell_enqueue(it));
        changes.chain(queued).collect()
    }

    fn tell(&self, change: &Change) -> String {
        match change {
            Change::Append(it) => format!("{} says {:?}", self.name(it.author), it.content),
            Change::SetVisibility { visibility, .. } => format!("message {}", word(visibility)),
            Change::SetContent(edit) => format!("message reads {:?}", edit.content),
            Change::HideTurn(turn) => format!("{} messages hidden", turn.len()),
            Change::AddSwipe(text) => format!("another text {:?}", text.content),
            Change::ShowSwipe(swipe) => format!("show {:?}", swipe.content),
            Change::NewRound { slots, .. } => {
                let names: Vec<&str> = slots.iter().map(|it| self.name(it.id)).collect();
                format!("round of {}", names.join(", "))
            }
            Change::EndRound { status, reason, .. } => format!("round {}: {reason}", word(status)),
            Change::MoveRound { state, cursor, .. } => format!("round {} at {cursor}", word(state)),
            Change::MarkSlot {
                position,
                status,
                skip_reason,
                ..
            } => {
                let why = skip_reason.map_or(String::new(), |it| format!(": {it}"));
                format!("slot {position} {}{why}", word(status))
            }
            Change::ReplaceSlots { from, slots, .. } => {
                let names: Vec<&str> = slots.iter().map(|it| self.name(it.id)).collect();
                format!("slots from {from}: {}", names.join(", "))
            }
            Change::Claim(run) => format!("claim {}", self.speaker(run)),
            Change::SkipQueued(run) => {
                let why = run.debug.skipped_because.as_deref().unwrap_or("?");
                format!("skip {}: {why}", self.speaker(run))
            }
            Change::FailQueued(run, error) => format!("fail {}: {}", self.speaker(run), error.code),
            Change::CancelQueued(run) => format!("cancel queued {}", self.speaker(run)),
            Change::AskCancel(run) => format!("ask {} to end", self.speaker(run)),
            Change::Finish { run, end } => format!("finish {}: {}", self.speaker(run), tell(end)),
            Change::Expire { run, end, .. } => {
                format!("expire {}: {}", self.speaker(run), tell(end))
            }
            Change::HandBack(run) => format!("hand back {}", self.speaker(run)),
            Change::Keep(..) => "keep what was sent".to_owned(),
            Change::Remember(_) => "remember".to_owned(),
            Change::CopilotStep(seat) => format!("a step of {}", self.name(*seat)),
            Change::AutoModeTurns(n) => format!("auto mode spoke {n} times"),
        }
    }

    fn tell_enqueue(&self, it: &Enqueue) -> String {
        let run = &it.run;
        let (kind, reason) = (word(&run.kind), word(&run.reason));
        let mut told = format!("queue {}: {kind}, {reason}", self.speaker(run));
        let wait = run.run_after.map_or(0, |at| at.ms_since(self.now));
        if wait != 0 {
            told += &format!(", in {wait} ms");
        }
        if run.attempt != 1 {
            told += &format!(", attempt {}", run.attempt);
        }
        told
    }

    fn speaker(&self, run: &run::Model) -> &str {
        self.name(run.speaker_space_membership_id)
    }

    fn name(&self, id: MembershipId) -> &str {
        let member = self.s.member(id);
        member.map_or("nobody", |it| it.cached_display_name.as_str())
    }
}

fn tell(end: &queue::End) -> String {
    match end {
        queue::End::Failed(error) => format!("failed {}", error.code),
        other => word(&other.status()),
    }
}

/// A state as rows and events spell it.
pub fn word(state: &impl Serialize) -> String {
    let value = serde_json::to_value(state).unwrap();
    value.as_str().unwrap().to_owned()
}

/// Whoever has a model to ask asks this one.
pub fn endpoint() -> provider::Model {
    provider::Model {
        id: ProviderId(1),
        name: "Demo".to_owned(),
        kind: ProviderKind::Demo,
        base_url: None,
        api_key: None,
        model: "demo".to_owned(),
        is_default: true,
        disabled: false,
        settings: serde_json::json!({}),
        created_at: Timestamp(0),
    }
}
