//! Publishes the events of a committed scheduler step in the order that the protocol guarantees.
//! Also updates leases and metrics, logs ended runs and signals the dispatchers.
//!
//! Messages and run ends come first, then the ends of their streams, the queued run, the queue
//! state, and `typing_stop`. `typing_start` comes last.

use leased_jobs::lease::CancelReason;
use realtime::cluster::signal::ClusterSignal;
use realtime::envelope::{Envelope, StreamBoundary, utf16_len};
use realtime::topic::Topic;

use crate::conversations::annotations::message_annotations::MessageAnnotations;
use crate::conversations::message;
use crate::rounds::round;
use crate::runs::events::{
    Activity, MessageEvent, MessageHidden, QueueUpdated, RunEvent, StreamComplete, StreamReset,
    TypingStart, TypingStop,
};
use crate::runs::execution::lease;
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
        it.publish_message(message, &written.annotations);
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
    for run in written
        .ended
        .iter()
        .map(|(run, _)| run)
        .chain(&written.released)
    {
        it.publish_typing_stop(run);
    }
    if let Some(run) = &written.claimed {
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

    fn publish_message(&self, written: &WrittenMessage, annotations: &MessageAnnotations) {
        let (row, is_new) = (&written.row, written.is_new);
        let conversation_id = row.conversation_id;
        if row.visibility == message::Visibility::Hidden {
            let event = MessageHidden {
                conversation_id,
                rev: row.rev,
                message: row.hidden_view(),
            };
            return self.publish_durable(&event, row.rev);
        }
        let author = self.state.member(row.space_membership_id);
        let name = author.map_or("", |it| it.cached_display_name.as_str());
        let view = row.view(name, written.n_swipes, Some(&self.context.markdown));
        let message = annotations.annotate(view);
        self.publish_durable(
            &MessageEvent {
                is_new,
                conversation_id,
                rev: row.rev,
                message,
            },
            row.rev,
        );
        if is_new {
            let activity = Activity {
                conversation_id,
                seq: row.seq,
            };
            let topic = Topic::Space(self.state.space.id);
            self.context.hub.publish(Envelope::plain(topic, &activity));
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
        if run.started_at.is_some() {
            let complete = StreamComplete {
                conversation_id: run.conversation_id,
                run_id: run.id,
                status: run.status,
            };
            self.publish_stream(&complete, run, StreamBoundary::Complete);
        }
    }

    fn publish_stream_reset(&self, run: &run::Model) {
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
        self.publish_durable(&event, rev);
    }

    fn publish_queue_updated(&self, rev: i64) {
        let event = QueueUpdated {
            conversation_id: self.state.conversation.id,
            rev,
            state: self.state.runtime().state(),
            round: self.state.round.as_ref().map(round::Model::view),
            queued_run: run::Model::optional_view(&self.state.queued),
            running_run: run::Model::optional_view(&self.state.running),
            auto_mode_turns_left: auto_mode::turns_left(
                &self.state.conversation,
                &self.state.space,
            ),
        };
        self.publish_durable(&event, rev);
    }

    fn publish_typing_start(&self, run: &run::Model) {
        let speaker = run.speaker_space_membership_id;
        self.context.metrics.claimed(run);
        // Register the lease before publishing: a cancellation that follows must find it.
        let lease = lease::of_run(run, &self.context.shutdown.releasing);
        self.context.leases.register(lease);
        let event = TypingStart {
            conversation_id: run.conversation_id,
            run_id: run.id,
            membership_id: speaker,
            kind: run.kind,
            target_message_id: run.debug.target_message_id,
            base_length: self.base_length(run),
        };
        self.context.live_streams.open(&event, run.lease);
        self.publish_stream(&event, run, StreamBoundary::Start);
    }

    /// Returns the length of the text that a run continues: its claim required it as the tail.
    fn base_length(&self, run: &run::Model) -> Option<usize> {
        let is_continue = run.kind == run::RunKind::Continue;
        let tail = self.state.tail.as_ref().filter(|_| is_continue)?;
        Some(utf16_len(&tail.content))
    }

    fn publish_typing_stop(&self, run: &run::Model) {
        if run.started_at.is_none() {
            return; // it never sent `typing_start`
        }
        let event = TypingStop {
            conversation_id: run.conversation_id,
            run_id: run.id,
            membership_id: run.speaker_space_membership_id,
        };
        self.publish_stream(&event, run, StreamBoundary::Stop);
    }

    fn publish_durable(&self, event: &impl realtime::envelope::Event, rev: i64) {
        self.context
            .hub
            .publish(Envelope::durable(self.topic, event, rev));
    }

    fn publish_stream(
        &self,
        event: &impl realtime::envelope::Event,
        run: &run::Model,
        mark: StreamBoundary,
    ) {
        self.context.hub.publish(Envelope::stream(
            self.topic,
            event,
            (run.id.0, run.lease),
            mark,
        ));
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
        membership.id = %run.speaker_space_membership_id,
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
