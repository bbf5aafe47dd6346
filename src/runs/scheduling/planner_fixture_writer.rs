//! Applies the changes of a plan to the planner's test fixture, each only from the state that the
//! real statement expects, and describes plans in words.

use base::clock::Timestamp;
use base::ids::{MembershipId, MessageId, ProviderId};
use llm::registry::ProviderKind;
use serde::Serialize;

use crate::conversations::{message, timeline};
use crate::providers::provider;
use crate::rounds::slot::SlotStatus;
use crate::runs::scheduling::plan::{
    EnqueueRun, MessageRef, NewMessage, NewRound, Plan, PlanChange, RoundChange,
};
use crate::runs::scheduling::planner::fixture::PlannerFixture;
use crate::runs::store::run::RunStatus;
use crate::runs::store::{queue, run};
use crate::spaces::membership::CopilotMode;

impl PlannerFixture {
    pub(super) fn apply(&mut self, change: PlanChange) {
        match change {
            PlanChange::Append(new) => self.append(new),
            PlanChange::SetVisibility {
                message,
                visibility,
            } => self.message_mut(message).visibility = visibility,
            PlanChange::SetRemembered { message, remember } => {
                self.message_mut(message).is_remembered = remember;
            }
            PlanChange::SetOutOfCharacter { message, is_ooc } => {
                self.message_mut(message).is_ooc = is_ooc;
            }
            PlanChange::SetContent(edit) => self.rewrite(edit.message, &edit.content),
            PlanChange::HideMessages(turn) => self.hide_messages(&turn),
            PlanChange::AddSwipe(text) => self.add_swipe(text),
            PlanChange::ShowSwipe { swipe, .. } => self.show_swipe(swipe),
            PlanChange::StorePrompt(..)
            | PlanChange::StoreEffects(_)
            | PlanChange::ChangeMemories(_) => {}
            PlanChange::SpendCopilotStep(member) => self.spend_copilot_step(member),
            PlanChange::AutoModeTurns(n) => self.state.conversation.auto_mode_turns = n,
            PlanChange::ClaimRun(run) => self.claim(&run),
            PlanChange::ChooseSpeaker(run) => self.choose_speaker(&run),
            PlanChange::SkipQueued(run) => self.leave_queue(run, RunStatus::Skipped),
            PlanChange::FailQueued(run, error) => {
                let error = Some(error);
                self.leave_queue(run::Model { error, ..run }, RunStatus::Failed);
            }
            PlanChange::CancelQueued(run) => self.leave_queue(run, RunStatus::Canceled),
            PlanChange::RequestCancel(run) => {
                let now = self.now;
                let running = self.state.running.as_mut().expect("a run is running");
                assert_eq!(running.id, run.id);
                running.cancel_requested_at = Some(now);
                running.keep_partial = true;
            }
            PlanChange::Finish { run, end } | PlanChange::ExpireLease { run, end, .. } => {
                let running = self.state.running.take().expect("a run is running");
                assert_eq!((running.id, running.lease), (run.id, run.lease));
                self.apply_end(run, end.status());
            }
            PlanChange::ExpectTail { mut run, tail } => {
                run.debug.expected_last_message_id = tail.and_then(|it| self.resolve(it));
                let queued = self.state.queued.replace(run).expect("a run is queued");
                let after = self.state.queued.as_ref();
                assert_eq!(after.map(|it| it.id), Some(queued.id));
            }
            PlanChange::ReleaseRun(run) => self.apply_release(&run),
            PlanChange::StartRound(new) => self.start_round(&new),
            PlanChange::ChangeRound(change) => self.change_round(&change),
            PlanChange::EndRound { .. } => {
                self.state.round.take().expect("a round is active");
            }
        }
    }

    fn spend_copilot_step(&mut self, membership: MembershipId) {
        let member = self.member_mut(membership);
        match member.copilot_remaining_steps {
            Some(left) if left > 1 => member.copilot_remaining_steps = Some(left - 1),
            _ => {
                member.copilot_mode = CopilotMode::None;
                member.copilot_remaining_steps = None;
                member.copilot_conversation_id = None;
            }
        }
    }

    fn append(&mut self, new: NewMessage) {
        let seq = self.state.conversation.last_seq + 1;
        self.state.conversation.last_seq = seq;
        let id = self.state.conversation.id;
        let mut row = timeline::new_model(id, new.author, new.role, new.content, self.now);
        (row.id, row.seq) = (MessageId(seq), seq);
        row.conversation_run_id = new.run;
        row.is_ooc = new.is_ooc;
        (row.audience, row.is_for_people) = (new.audience, new.is_for_people);
        if row.is_scheduled() {
            self.state.tail = Some(row.clone());
        }
        self.messages.push(row);
    }

    pub(super) fn message_mut(&mut self, id: MessageId) -> &mut message::Model {
        let mut messages = self.messages.iter_mut();
        messages.find(|it| it.id == id).expect("a message")
    }

    fn claim(&mut self, run: &run::Model) {
        let mut queued = self.state.queued.take().expect("a run is queued");
        assert_eq!(queued.id, run.id);
        assert!(self.state.running.is_none(), "I1: another run runs");
        queued.status = RunStatus::Running;
        queued.lease += 1;
        queued.started_at = Some(self.now);
        queued.cutoff_seq = Some(self.state.conversation.last_seq);
        self.state.running = Some(queued);
    }

    fn choose_speaker(&mut self, run: &run::Model) {
        let running = self.state.running.as_mut().expect("a run is running");
        assert_eq!((running.id, running.lease), (run.id, run.lease));
        assert!(
            running.speaker_space_membership_id.is_none(),
            "chosen twice"
        );
        running.speaker_space_membership_id = run.speaker_space_membership_id;
        (running.debug, running.usage) = (run.debug.clone(), run.usage);
    }

    fn leave_queue(&mut self, run: run::Model, status: RunStatus) {
        let queued = self.state.queued.take().expect("a run is queued");
        assert_eq!(queued.id, run.id);
        self.apply_end(run, status);
    }

    fn apply_end(&mut self, mut run: run::Model, status: RunStatus) {
        let before = self.ended.iter().find(|it| it.id == run.id);
        assert!(before.is_none(), "a run ends twice: {before:?}");
        run.status = status;
        run.finished_at = Some(self.now);
        let is_canceled = status == RunStatus::Canceled;
        assert_eq!(run.canceled_because.is_some(), is_canceled, "{run:?}");
        run.set_superseding_message(self.messages.last());
        self.state.conversation.tokens_used += run.usage.map_or(0, run::RunUsage::total);
        self.ended.push(run);
    }

    fn apply_release(&mut self, run: &run::Model) {
        let mut running = self.state.running.take().expect("a run is running");
        assert_eq!((running.id, running.lease), (run.id, run.lease));
        assert!(self.state.queued.is_none(), "I1: another run is queued");
        running.status = RunStatus::Queued;
        (running.started_at, running.cutoff_seq) = (None, None);
        running.usage = run.usage;
        self.state.queued = Some(running);
    }

    fn start_round(&mut self, new: &NewRound) {
        assert!(self.state.round.is_none(), "I1: another round is active");
        let trigger = self.resolve(new.trigger);
        let round = new.to_row(self.state.conversation.id, trigger, self.now);
        self.state.round = Some(round);
    }

    fn change_round(&mut self, change: &RoundChange) {
        let round = self.state.round.as_mut().expect("a round is active");
        match change {
            RoundChange::Move { cursor, .. } => {
                assert!(*cursor >= round.cursor, "a cursor never goes back");
            }
            RoundChange::MarkSlot { position, .. } => {
                assert!(round.slots.at(*position).is_some(), "the slot exists");
            }
            RoundChange::Wait { .. } => {
                let slot = round.current_slot().expect("a slot is current");
                assert_eq!(slot.status, SlotStatus::Pending);
            }
            RoundChange::ReplaceSlots { .. } => {}
        }
        let appended = self.messages.last().map(|it| it.id);
        let round = self.state.round.as_mut().expect("a round is active");
        change.apply(round, appended);
    }

    pub(super) fn enqueue(&mut self, enqueue: EnqueueRun) {
        let mut run = enqueue.run;
        assert_eq!(run.status, RunStatus::Queued);
        self.state.conversation.last_run_seq += 1;
        run.run_seq = self.state.conversation.last_run_seq;
        run.debug.trigger_message_id = enqueue.trigger.and_then(|it| self.resolve(it));
        run.debug.expected_last_message_id = enqueue.expected_tail.and_then(|it| self.resolve(it));
        if let Some(present) = self.state.queued.take() {
            // The upsert: the row keeps its id and gets the new plan.
            run = run::Model {
                id: present.id,
                created_at: present.created_at,
                lease: present.lease,
                cancel_requested_at: present.cancel_requested_at,
                keep_partial: present.keep_partial,
                ..run
            };
        }
        self.state.queued = Some(run);
    }

    fn resolve(&self, reference: MessageRef) -> Option<MessageId> {
        match reference {
            MessageRef::Message(id) => Some(id),
            MessageRef::Appended => self.messages.last().map(|it| it.id),
        }
    }

    /// Describes a plan in words: what ends, what changes, and what is queued.
    pub fn describe(&self, plan: &Plan) -> Vec<String> {
        let changes = plan.changes.iter().map(|it| self.describe_change(it));
        let queued = plan.enqueue.iter().map(|it| self.describe_enqueue(it));
        changes.chain(queued).collect()
    }

    fn describe_change(&self, change: &PlanChange) -> String {
        match change {
            PlanChange::Append(it) => format!("{} says {:?}", self.name(it.author), it.content),
            PlanChange::SetVisibility { visibility, .. } => {
                format!("message {}", status_text(visibility))
            }
            PlanChange::SetRemembered { remember, .. } => format!("message remembered: {remember}"),
            PlanChange::SetOutOfCharacter { is_ooc, .. } => {
                format!("message out of character: {is_ooc}")
            }
            PlanChange::SetContent(edit) => format!("message reads {:?}", edit.content),
            PlanChange::HideMessages(turn) => format!("{} messages hidden", turn.len()),
            PlanChange::AddSwipe(text) => format!("another text {:?}", text.content),
            PlanChange::ShowSwipe { swipe, .. } => format!("show {:?}", swipe.content),
            PlanChange::StartRound(new) => {
                let slots = new.slots.iter();
                let names: Vec<&str> = slots.map(|it| self.name_of(it.speaker)).collect();
                format!("round of {}", names.join(", "))
            }
            PlanChange::ChangeRound(change) => self.describe_round_change(change),
            PlanChange::EndRound { status, reason } => {
                format!("round {}: {reason}", status_text(status))
            }
            PlanChange::ClaimRun(run) => format!("claim {}", self.speaker(run)),
            PlanChange::ChooseSpeaker(run) => format!("choose {}", self.speaker(run)),
            PlanChange::SkipQueued(run) => {
                let reason = run.debug.skipped_because.as_deref().unwrap_or("?");
                format!("skip {}: {reason}", self.speaker(run))
            }
            PlanChange::FailQueued(run, error) => {
                format!("fail {}: {}", self.speaker(run), error.code)
            }
            PlanChange::CancelQueued(run) => format!("cancel queued {}", self.speaker(run)),
            PlanChange::RequestCancel(run) => format!("ask {} to end", self.speaker(run)),
            PlanChange::Finish { run, end } => {
                format!("finish {}: {}", self.speaker(run), describe_end(end))
            }
            PlanChange::ExpireLease { run, end, .. } => {
                format!("expire {}: {}", self.speaker(run), describe_end(end))
            }
            PlanChange::ExpectTail { run, .. } => {
                format!("{} expects another tail", self.speaker(run))
            }
            PlanChange::ReleaseRun(run) => format!("hand back {}", self.speaker(run)),
            PlanChange::StorePrompt(..) => "keep what was sent".to_owned(),
            PlanChange::StoreEffects(_) => "remember".to_owned(),
            PlanChange::ChangeMemories(_) => "change memories".to_owned(),
            PlanChange::SpendCopilotStep(member) => format!("a step of {}", self.name(*member)),
            PlanChange::AutoModeTurns(n) => format!("auto mode spoke {n} times"),
        }
    }

    fn describe_round_change(&self, change: &RoundChange) -> String {
        match change {
            RoundChange::Move { state, cursor } => {
                format!("round {} at {cursor}", status_text(state))
            }
            RoundChange::MarkSlot {
                position,
                status,
                skip_reason,
            } => {
                let reason = skip_reason.map_or(String::new(), |it| format!(": {it}"));
                format!("slot {position} {}{reason}", status_text(status))
            }
            RoundChange::Wait { since, deadline } => match deadline {
                Some(at) => format!("wait {} ms for a person", at.ms_since(*since)),
                None => "wait for a person".to_owned(),
            },
            RoundChange::ReplaceSlots { from, slots } => {
                let slots = slots.iter();
                let names: Vec<&str> = slots.map(|it| self.name_of(it.speaker)).collect();
                format!("slots from {from}: {}", names.join(", "))
            }
        }
    }

    fn describe_enqueue(&self, enqueue: &EnqueueRun) -> String {
        let run = &enqueue.run;
        let (kind, reason) = (status_text(&run.kind), status_text(&run.reason));
        let mut description = format!("queue {}: {kind}, {reason}", self.speaker(run));
        let wait = run.run_after.map_or(0, |at| at.ms_since(self.now));
        if wait != 0 {
            description += &format!(", in {wait} ms");
        }
        if run.attempt != 1 {
            description += &format!(", attempt {}", run.attempt);
        }
        description
    }

    fn speaker(&self, run: &run::Model) -> &str {
        self.name_of(run.speaker_space_membership_id)
    }

    fn name_of(&self, speaker: Option<MembershipId>) -> &str {
        speaker.map_or("director", |it| self.name(it))
    }

    fn name(&self, id: MembershipId) -> &str {
        let member = self.state.member(id);
        member.map_or("nobody", |it| it.cached_display_name.as_str())
    }
}

fn describe_end(end: &queue::RunEnd) -> String {
    match end {
        queue::RunEnd::Failed(error) => format!("failed {}", error.code),
        other => status_text(&other.status()),
    }
}

/// Returns a state as spelled in rows and events.
pub fn status_text(state: &impl Serialize) -> String {
    let value = serde_json::to_value(state).unwrap();
    value.as_str().unwrap().to_owned()
}

/// Returns the provider that every member of the fixture uses.
pub fn provider_row() -> provider::Model {
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
