//! Publishes the events of a committed scheduler step in the order that the protocol guarantees.
//! Also updates leases and metrics, logs ended runs and signals the dispatchers.
//!
//! Messages and run ends come first, then the ends of their streams, the queued run, the queue
//! state, whose turn it is, and `typing_stop`. `typing_start` comes last, and not before the run has a
//! speaker.

use leased_jobs::lease::CancelReason;
use realtime::cluster::signal::ClusterSignal;
use realtime::envelope::{Envelope, Event, Receivers, StreamBoundary, utf16_len};
use realtime::topic::Topic;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::display::display_scripts::ShownText;
use crate::conversations::message;
use crate::runs::announcements::receivers;
use crate::runs::announcements::receivers::ReceiverGroup;
use crate::runs::events::{
    Activity, MessageHidden, QueueUpdated, RunEvent, StreamComplete, StreamReset, TypingStart,
    TypingStop, YourTurn,
};
use crate::runs::execution::lease;
use crate::runs::reading::views;
use crate::runs::scheduling::auto_mode;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::services::RunServices;
use crate::runs::store::plan_writer::{WrittenMessage, WrittenPlan};
use crate::runs::store::run;
use crate::spaces::{events, membership};

/// Publishes what a step has written; `state` is the conversation after the step.
pub fn announce(context: &RunServices, state: &ScheduleState, written: WrittenPlan) {
    let it = Announcer {
        context,
        state,
        topic: Topic::Conversation(state.conversation.id),
    };
    // Close the streams first: no delta of a stream may follow the event that ends it.
    for (run, _) in &written.ended {
        it.close_stream(run);
    }
    for run in &written.released {
        it.close_stream(run);
    }
    for message in &written.messages {
        it.publish_message(message, &written);
    }
    for membership in &written.memberships {
        it.publish_membership(membership);
    }
    for (run, rev) in &written.ended {
        it.publish_run_end(run, *rev);
    }
    for run in &written.released {
        it.publish_stream_reset(run);
    }
    if let Some((run, rev)) = &written.queued {
        it.publish_run_event(run, *rev);
    }
    if let Some(rev) = written.queue_rev {
        it.publish_queue_updated(rev);
    }
    if written.has_new_turn {
        it.publish_your_turn();
    }
    for run in written
        .ended
        .iter()
        .map(|(run, _)| run)
        .chain(&written.released)
    {
        it.publish_typing_stop(run);
    }
    if let Some(run) = &written.claimed {
        it.register_claim(run);
    }
    if let Some(run) = written.claimed.as_ref().or(written.chosen.as_ref()) {
        it.publish_typing_start(run);
    }
    for run in &written.cancel_requested {
        context.leases.cancel(&run.id, CancelReason::Requested);
        context.hub.bus().publish(ClusterSignal::KeepPartial {
            run: run.id.0,
            lease: run.lease,
        });
    }
    it.announce_memory(&written);
    // A permit is free, or a run is queued.
    if !written.ended.is_empty() || state.queued.is_some() {
        context.wakeup.notify();
        context.hub.bus().publish(ClusterSignal::RunDue);
    }
}

struct Announcer<'a> {
    context: &'a RunServices,
    state: &'a ScheduleState,
    topic: Topic,
}

impl Announcer<'_> {
    fn announce_memory(&self, written: &WrittenPlan) {
        let events = &self.context.memory_events;
        if let Some(version) = written.memory_version {
            events.memories_changed(self.state.space.id, version);
        }
        if let Some(seqs) = written.outdated_summaries {
            events.summaries_outdated(self.state.conversation.id, seqs);
        }
    }

    fn close_stream(&self, run: &run::Model) {
        let live = &self.context.live_streams;
        live.close(run.conversation_id, run.id, run.lease);
        if run.status != run::RunStatus::Succeeded {
            self.context.leases.cancel(&run.id, CancelReason::LeaseLost);
        }
    }

    fn publish_message(&self, written: &WrittenMessage, plan: &WrittenPlan) {
        let annotations = &plan.annotations;
        let (row, is_new) = (&written.row, written.is_new);
        let (conversation_id, audience) = (row.conversation_id, row.audience.as_ref());
        if row.visibility == message::Visibility::Hidden {
            let event = MessageHidden {
                conversation_id,
                rev: row.rev,
                message: row.hidden_view(),
            };
            return self.publish_private(&event, row.rev, audience);
        }
        let author = self.state.member(row.space_membership_id);
        let name = author.map_or("", |it| it.cached_display_name.as_str());
        let shown = ShownText::of_message(row, name);
        let html = plan.scripts.render(&self.context.markdown, shown);
        let view = row.view(name, written.n_swipes, Some(html));
        let quoted = annotations
            .quoted(row.id)
            .and_then(|it| it.audience.as_ref());
        let view_for = |viewer| annotations.annotate(view.clone(), viewer);
        receivers::publish_message(&self.context.hub, (row, quoted), is_new, view_for);
        if is_new {
            let activity = Activity {
                conversation_id,
                seq: row.seq,
            };
            let topic = Topic::Space(self.state.space.id);
            let envelope = Envelope {
                receivers: receivers::of(audience),
                ..Envelope::plain(topic, &activity)
            };
            self.context.hub.publish(envelope);
        }
    }

    fn publish_membership(&self, membership: &membership::Model) {
        let hub = &self.context.hub;
        hub.publish(events::membership_updated(membership));
        if let Some(event) = events::copilot_updated(membership) {
            hub.publish(event);
        }
    }

    fn publish_run_end(&self, run: &run::Model, rev: Option<i64>) {
        if let Some(rev) = rev {
            self.publish_run_event(run, rev);
        }
        log_end(self.state, run);
        self.context.metrics.ended(run);
        if run.started_at.is_some() && run.speaker_space_membership_id.is_some() {
            let complete = StreamComplete {
                conversation_id: run.conversation_id,
                run_id: run.id,
                status: run.status,
            };
            self.publish_stream(&complete, run, StreamBoundary::Complete);
        }
    }

    fn publish_stream_reset(&self, run: &run::Model) {
        if run.speaker_space_membership_id.is_none() {
            return; // its stream has not begun
        }
        let event = StreamReset {
            conversation_id: run.conversation_id,
            run_id: run.id,
        };
        self.publish_stream(&event, run, StreamBoundary::Reset);
    }

    fn publish_run_event(&self, run: &run::Model, rev: i64) {
        let event = RunEvent {
            conversation_id: run.conversation_id,
            rev,
            run: run.view(),
            error: run.error.clone(),
            reason: run.canceled_because,
            message_id: run.superseded_by_message_id,
        };
        self.publish_private(&event, rev, run.audience.as_ref());
    }

    fn publish_queue_updated(&self, rev: i64) {
        let state = self.state;
        let runs = [&state.queued, &state.running].map(|it| it.as_ref()?.audience.as_ref());
        let round = state.round.as_ref().and_then(|it| it.audience.as_ref());
        for ReceiverGroup { receivers, viewer } in receivers::group(runs.into_iter().chain([round]))
        {
            let runtime = state.runtime();
            let event = QueueUpdated {
                conversation_id: state.conversation.id,
                rev,
                state: runtime.state(),
                round: runtime.round_document(viewer),
                queued_run: views::document(&state.queued, viewer),
                running_run: views::document(&state.running, viewer),
                auto_mode_turns_left: auto_mode::turns_left(&state.conversation, &state.space),
            };
            self.publish_durable(&event, rev, receivers);
        }
    }

    /// Notifies the person for whose message the round waits.
    fn publish_your_turn(&self) {
        let round = self.state.round.as_ref();
        let slot = round.and_then(|it| it.current_slot());
        let (Some(round), Some(slot)) = (round, slot) else {
            return;
        };
        let person = slot
            .space_membership_id
            .and_then(|it| self.state.member(it));
        let Some((member, user)) = person.and_then(|it| Some((it.id, it.user_id?))) else {
            return;
        };
        let event = YourTurn {
            conversation_id: self.state.conversation.id,
            round_id: round.id,
            slot_position: slot.position,
            membership_id: member,
            deadline_at: round.deadline_at,
        };
        let envelope = Envelope::plain(Topic::User(user), &event);
        self.context.hub.publish(envelope);
        self.context.turn_began.notify_waiters();
    }

    /// Registers the lease before anything is published: a cancellation that follows must find it.
    fn register_claim(&self, run: &run::Model) {
        self.context.metrics.claimed(run);
        let lease = lease::of_run(run, &self.context.shutdown.releasing);
        self.context.leases.register(lease);
    }

    fn publish_typing_start(&self, run: &run::Model) {
        let Some(membership_id) = run.speaker_space_membership_id else {
            return; // its speaker is chosen first
        };
        let event = TypingStart {
            conversation_id: run.conversation_id,
            run_id: run.id,
            membership_id,
            kind: run.kind,
            target_message_id: run.debug.target_message_id,
            base_length: (self.state.facts.continued()).map(|it| utf16_len(&it.content)),
        };
        let receivers = receivers::of(run.audience.as_ref());
        self.context.live_streams.open(&event, run.lease, receivers);
        self.publish_stream(&event, run, StreamBoundary::Start);
    }

    fn publish_typing_stop(&self, run: &run::Model) {
        let speaker = run.speaker_space_membership_id;
        let Some(membership_id) = speaker.filter(|_| run.started_at.is_some()) else {
            return; // it never sent `typing_start`
        };
        let event = TypingStop {
            conversation_id: run.conversation_id,
            run_id: run.id,
            membership_id,
        };
        self.publish_stream(&event, run, StreamBoundary::Stop);
    }

    fn publish_private(&self, event: &impl Event, rev: i64, audience: Option<&Audience>) {
        let (hub, id) = (&self.context.hub, self.state.conversation.id);
        receivers::publish_private(hub, id, (event, rev), audience);
    }

    fn publish_durable(&self, event: &impl Event, rev: i64, receivers: Receivers) {
        let envelope = Envelope {
            receivers,
            ..Envelope::durable(self.topic, event, rev)
        };
        self.context.hub.publish(envelope);
    }

    /// Publishes a frame of the stream of a run. A subscriber that does not receive its start ignores
    /// its other frames.
    fn publish_stream(&self, event: &impl Event, run: &run::Model, mark: StreamBoundary) {
        let envelope = Envelope::stream(self.topic, event, (run.id.0, run.lease), mark);
        let receivers = receivers::of(run.audience.as_ref());
        self.context.hub.publish(Envelope {
            receivers,
            ..envelope
        });
    }
}

/// Logs one line for the end of a run, with its cost and its reason.
fn log_end(state: &ScheduleState, run: &run::Model) {
    let began = run.started_at.unwrap_or(run.created_at);
    let usage = run.usage.unwrap_or(run::RunUsage {
        prompt_tokens: 0,
        completion_tokens: 0,
        estimated: false,
    });
    tracing::info!(
        run.id = %run.id,
        run.kind = run.kind.word(),
        run.status = run.status.word(),
        run.attempt = run.attempt,
        conversation.id = %run.conversation_id,
        space.id = %state.space.id,
        membership.id = run.speaker_space_membership_id.map(tracing::field::display),
        llm.provider = run.debug.prompt.as_ref().map(|it| it.provider.as_str()),
        llm.model = run.debug.prompt.as_ref().map(|it| it.model.as_str()),
        llm.tokens_in = usage.prompt_tokens,
        llm.tokens_out = usage.completion_tokens,
        llm.tokens_estimated = usage.estimated,
        queue_wait_ms = run.queue_wait_ms(),
        duration_ms = run.finished_at.map(|it| it.ms_since(began)),
        error = run.error.as_ref().map(|it| it.code.as_str()),
        "run {} {}",
        run.id,
        run.status.word(),
    );
}
