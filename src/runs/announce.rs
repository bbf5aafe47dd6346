//! Tells listeners what a step committed, in the order the protocol promises.
//!
//! Messages and ends of runs first, then the end of their streams, what is queued, the queue as it
//! is now, who stopped typing; who begins to type comes last.

use crate::conversations::message;
use crate::realtime::cluster::signal::ClusterSignal;
use crate::realtime::event::Envelope;
use crate::realtime::event::StreamBoundary;
use crate::realtime::topic::Topic;
use crate::runs::auto_mode;
use crate::runs::context::Context;
use crate::runs::events::Activity;
use crate::runs::events::MessageEvent;
use crate::runs::events::MessageHidden;
use crate::runs::events::QueueUpdated;
use crate::runs::events::RunEvent;
use crate::runs::events::StreamComplete;
use crate::runs::events::StreamReset;
use crate::runs::events::TypingStart;
use crate::runs::events::TypingStop;
use crate::runs::lease::Why;
use crate::runs::run;
use crate::runs::situation::Round;
use crate::runs::situation::Situation;
use crate::runs::writer::Told;
use crate::runs::writer::Written;
use crate::spaces::events;
use crate::spaces::membership;

/// Announces what was written; `s` is the conversation as it is now.
pub fn announce(context: &Context, s: &Situation, written: Written) {
    let it = Announcer {
        context,
        s,
        topic: Topic::Conversation(s.conversation.id),
    };
    // First of all, silence: nothing of a stream may follow the word that it ended.
    for (run, _) in &written.ended {
        it.silence(run);
    }
    for run in &written.handed_back {
        it.silence(run);
    }
    for told in &written.messages {
        it.message(told);
    }
    for seat in &written.seats {
        it.seat(seat);
    }
    for (run, rev) in &written.ended {
        it.ended(run, *rev);
    }
    for run in &written.handed_back {
        it.reset(run);
    }
    if let Some((run, rev)) = &written.queued {
        it.run_event(run, *rev);
    }
    if let Some(rev) = written.queue_rev {
        it.queue_updated(rev);
    }
    for run in written
        .ended
        .iter()
        .map(|(run, _)| run)
        .chain(&written.handed_back)
    {
        it.typing_stop(run);
    }
    if let Some(run) = &written.claimed {
        it.typing_start(run);
    }
    for run in &written.asked {
        context.leases.end(run.id, Why::KeepPartial);
        context.hub.bus().publish(ClusterSignal::KeepPartial {
            run: run.id.0,
            lease: run.lease,
        });
    }
    // A place is free, or something waits in it.
    if !written.ended.is_empty() || s.queued.is_some() {
        context.bell.ring();
        context.hub.bus().publish(ClusterSignal::Bell);
    }
}

struct Announcer<'a> {
    context: &'a Context,
    s: &'a Situation,
    topic: Topic,
}

impl Announcer<'_> {
    fn silence(&self, run: &run::Model) {
        let live = &self.context.live;
        live.close(run.conversation_id, run.id, run.lease);
        if run.status != run::RunStatus::Succeeded {
            self.context.leases.end(run.id, Why::Lost);
        }
    }

    fn message(&self, told: &Told) {
        let (row, is_new) = (&told.row, told.is_new);
        let conversation_id = row.conversation_id;
        if row.visibility == message::Visibility::Hidden {
            let event = MessageHidden {
                conversation_id,
                rev: row.rev,
                message: row.hidden_view(),
            };
            return self.durable(&event, row.rev);
        }
        let author = self.s.member(row.space_membership_id);
        let name = author.map_or("", |it| it.cached_display_name.as_str());
        let message = row.view(name, told.n_swipes, Some(&self.context.markdown));
        self.durable(
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
            let topic = Topic::Space(self.s.space.id);
            self.context.hub.publish(Envelope::plain(topic, &activity));
        }
    }

    fn seat(&self, seat: &membership::Model) {
        let hub = &self.context.hub;
        hub.publish(events::membership_updated(seat));
        if let Some(told) = events::copilot_updated(seat) {
            hub.publish(told);
        }
    }

    fn ended(&self, run: &run::Model, rev: Option<i64>) {
        if let Some(rev) = rev {
            self.run_event(run, rev);
        }
        log_end(self.s, run);
        self.context.meter.ended(run);
        if run.started_at.is_some() {
            let complete = StreamComplete {
                conversation_id: run.conversation_id,
                run_id: run.id,
                status: run.status,
            };
            self.stream(&complete, run, StreamBoundary::Complete);
        }
    }

    fn reset(&self, run: &run::Model) {
        let event = StreamReset {
            conversation_id: run.conversation_id,
            run_id: run.id,
        };
        self.stream(&event, run, StreamBoundary::Reset);
    }

    fn run_event(&self, run: &run::Model, rev: i64) {
        let event = RunEvent {
            conversation_id: run.conversation_id,
            rev,
            run: run.view(),
            error: run.error.clone(),
            reason: run.canceled_because,
            message_id: run.superseded_by_message_id,
        };
        self.durable(&event, rev);
    }

    fn queue_updated(&self, rev: i64) {
        let event = QueueUpdated {
            conversation_id: self.s.conversation.id,
            rev,
            state: self.s.runtime().state(),
            round: self.s.round.as_ref().map(Round::view),
            queued_run: run::Model::view_of(&self.s.queued),
            running_run: run::Model::view_of(&self.s.running),
            auto_mode_turns_left: auto_mode::turns_left(&self.s.conversation, &self.s.space),
        };
        self.durable(&event, rev);
    }

    fn typing_start(&self, run: &run::Model) {
        let speaker = run.speaker_space_membership_id;
        self.context.meter.claimed(run);
        // Held before anybody hears of it: a cancel that follows must find it.
        self.context
            .leases
            .hold(run, &self.context.shutdown.releasing);
        let event = TypingStart {
            conversation_id: run.conversation_id,
            run_id: run.id,
            membership_id: speaker,
            kind: run.kind,
            target_message_id: run.debug.target_message_id,
        };
        self.context.live.open(&event, run.lease);
        self.stream(&event, run, StreamBoundary::Start);
    }

    fn typing_stop(&self, run: &run::Model) {
        if run.started_at.is_none() {
            return; // it never began to type
        }
        let event = TypingStop {
            conversation_id: run.conversation_id,
            run_id: run.id,
            membership_id: run.speaker_space_membership_id,
        };
        self.stream(&event, run, StreamBoundary::Stop);
    }

    fn durable(&self, event: &impl crate::realtime::event::Event, rev: i64) {
        self.context
            .hub
            .publish(Envelope::durable(self.topic, event, rev));
    }

    fn stream(
        &self,
        event: &impl crate::realtime::event::Event,
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

/// One line for each run's end, with its cost and its reason.
fn log_end(s: &Situation, run: &run::Model) {
    let began = run.started_at.unwrap_or(run.created_at);
    let usage = run.usage.unwrap_or(run::Usage {
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
        space.id = %s.space.id,
        membership.id = %run.speaker_space_membership_id,
        llm.provider = run.debug.prompt.as_ref().map(|it| it.provider.as_str()),
        llm.model = run.debug.prompt.as_ref().map(|it| it.model.as_str()),
        llm.tokens_in = usage.prompt_tokens,
        llm.tokens_out = usage.completion_tokens,
        llm.tokens_estimated = usage.estimated,
        queue_wait_ms = run.waited_ms(),
        duration_ms = run.finished_at.map(|it| it.ms_since(began)),
        error = run.error.as_ref().map(|it| it.code.as_str()),
        "run {} {}",
        run.id,
        run.status.word(),
    );
}
