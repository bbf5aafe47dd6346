//! Processes the queued items of a live socket's outbox: filters and sends events, completes
//! subscriptions, and acts on control events and access checks.

use std::collections::HashSet;
use std::sync::Arc;

use base::ids::{ConversationId, MembershipId, SpaceId};
use realtime::envelope::{Envelope, Payload, SocketControl};
use realtime::outbox::NextItem;
use realtime::topic::Topic;
use uuid::Uuid;

use crate::web::error::ApiError;
use crate::web::live::authorization::ReviewResult;
use crate::web::live::pending_subscription::PendingSubscription;
use crate::web::live::queries::RevokedAccess;
use crate::web::live::server_frames;
use crate::web::live::server_frames::{Resync, StreamRepaired, Unsubscribed, UnsubscribedSpace};
use crate::web::live::session::LiveSession;
use crate::web::live::subscription_filter::FilterDecision;
use crate::web::ws::connection::DisconnectReason;
use crate::web::ws::socket_caller;

/// The maximum number of items sent before client frames are read again.
const MAX_BATCH: usize = 32;

impl LiveSession {
    /// Processes the next item and some of those queued after it.
    pub(super) async fn deliver_batch(&mut self, first: NextItem) -> Result<(), DisconnectReason> {
        self.deliver(first).await?;
        for _ in 1..MAX_BATCH {
            match self.outbox.try_next() {
                Some(next) => self.deliver(next).await?,
                None => break,
            }
        }
        Ok(())
    }

    pub(super) async fn deliver(&mut self, next: NextItem) -> Result<(), DisconnectReason> {
        match next {
            NextItem::Control(SocketControl::RightsChanged(space)) => {
                self.recheck_access(Some(space));
                Ok(())
            }
            NextItem::Control(SocketControl::RoleLost) => {
                self.recheck_access(None);
                Ok(())
            }
            NextItem::Control(order) => {
                match socket_caller::disconnect_reason(self.caller, order) {
                    Some(end) => Err(end),
                    None => Ok(()),
                }
            }
            NextItem::Overflow => Err(DisconnectReason::ClosedByServer(4008, "slow")),
            NextItem::Gap(conversation) => self.handle_gap(conversation).await,
            NextItem::Barrier(_) => self.finish_subscribe().await,
            NextItem::Envelope(envelope) => match envelope.topic {
                Topic::Conversation(id) => self.deliver_to_conversation(id, envelope).await,
                Topic::Space(id) => self.deliver_to_space(id, &envelope).await,
                Topic::User(_) => self.forward(&envelope).await,
            },
        }
    }

    /// Checks the subscriptions of a space, or of all spaces, again.
    fn recheck_access(&mut self, space: Option<SpaceId>) {
        let is_free = self.is_idle();
        let context = (&self.app, self.caller, &self.subscriptions);
        self.access_guard.recheck(context, space, is_free);
    }

    async fn handle_gap(&mut self, id: ConversationId) -> Result<(), DisconnectReason> {
        if let Some(pending) = self.pending_for(id) {
            pending.has_gap = true;
            return Ok(());
        }
        if !self.subscriptions.contains(id) {
            return Ok(());
        }
        self.send_resync(id).await
    }

    async fn deliver_to_space(
        &mut self,
        id: SpaceId,
        envelope: &Envelope,
    ) -> Result<(), DisconnectReason> {
        let member = self.subscriptions.space_membership(id);
        match self.subscriptions.contains_space(id) && envelope.receivers.include(member) {
            true => self.forward(envelope).await,
            false => Ok(()),
        }
    }

    async fn deliver_to_conversation(
        &mut self,
        id: ConversationId,
        envelope: Arc<Envelope>,
    ) -> Result<(), DisconnectReason> {
        if let Some(pending) = self.pending_for(id) {
            pending.buffer(envelope);
            return Ok(());
        }
        self.filter_and_send(id, &envelope).await
    }

    fn pending_for(&mut self, id: ConversationId) -> Option<&mut PendingSubscription> {
        self.pending
            .as_deref_mut()
            .filter(|it| it.conversation == id)
    }

    async fn filter_and_send(
        &mut self,
        id: ConversationId,
        envelope: &Envelope,
    ) -> Result<(), DisconnectReason> {
        let member = self.subscriptions.membership(id);
        if !envelope.receivers.include(member) {
            return Ok(());
        }
        let Some(filter) = self.subscriptions.filter(id) else {
            return Ok(());
        };
        match filter.decide(&envelope.payload) {
            FilterDecision::Drop => Ok(()),
            FilterDecision::Forward => self.forward(envelope).await,
            FilterDecision::ForwardRest(rest) => {
                self.link.send(rest.frame(self.protocol).clone()).await
            }
            FilterDecision::Repair { run, end } => self.repair_stream(id, run, end).await,
            FilterDecision::Resync => self.send_resync(id).await,
        }
    }

    /// Sends an envelope unchanged.
    async fn forward(&mut self, envelope: &Envelope) -> Result<(), DisconnectReason> {
        let except = match &envelope.payload {
            Payload::ExceptUser { except, .. } => Some(*except),
            _ => None,
        };
        match envelope.frame(self.protocol) {
            Some(frame) if except != Some(self.caller.user) => self.link.send(frame.clone()).await,
            _ => Ok(()),
        }
    }

    async fn repair_stream(
        &mut self,
        id: ConversationId,
        run: Uuid,
        end: usize,
    ) -> Result<(), DisconnectReason> {
        let live = self.app.engine.live_text(id);
        let live = live.filter(|it| it.run_id.0 == run);
        let text = live.as_ref().map(|it| it.text.as_str());
        let is_snapshot_sent = self
            .subscriptions
            .filter(id)
            .is_some_and(|it| it.repair(run, end, text));
        match text {
            Some(text) if is_snapshot_sent => {
                let repaired = StreamRepaired {
                    conversation_id: id,
                    run_id: run,
                    text,
                };
                self.send(&repaired).await
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn send_resync(
        &mut self,
        conversation_id: ConversationId,
    ) -> Result<(), DisconnectReason> {
        self.subscriptions.suspend(conversation_id);
        self.app.hub.metrics().resyncs.inc();
        self.send(&Resync { conversation_id }).await
    }

    /// The barrier was reached, so all earlier events are buffered: sends the answer, then the
    /// buffered events.
    async fn finish_subscribe(&mut self) -> Result<(), DisconnectReason> {
        let Some(mut pending) = self.pending.take() else {
            return Ok(());
        };
        let Some(result) = pending.result.take() else {
            // The barrier is set when the answer is known.
            return Ok(());
        };
        let (id, is_lost) = (pending.conversation, pending.has_gap);
        self.subscriptions
            .activate(id, result.opened.space, result.opened.membership);
        let presence = self.app.presence.members(id);
        let frame = server_frames::snapshot(
            &pending.frame_id,
            result.opened.rev,
            &result.opened.snapshot,
            &presence,
            result.stream.as_ref(),
        );
        self.link.send(frame).await?;
        if is_lost {
            return self.send_resync(id).await;
        }
        let running = result.opened.running.map(|it| it.0);
        self.app.hub.stream_started(id, result.opened.rev, running);
        let (filter, buffered) = pending.release(&result);
        self.subscriptions.install_filter(id, filter);
        self.filter_all(id, buffered).await
    }

    /// Filters and sends buffered envelopes in order.
    pub(super) async fn filter_all(
        &mut self,
        id: ConversationId,
        buffered: Vec<Arc<Envelope>>,
    ) -> Result<(), DisconnectReason> {
        for envelope in buffered {
            self.filter_and_send(id, &envelope).await?;
        }
        Ok(())
    }

    pub(super) async fn apply_review(
        &mut self,
        reviewed: ReviewResult,
    ) -> Result<(), DisconnectReason> {
        match reviewed {
            ReviewResult::Caller(Ok(true)) => Ok(()),
            ReviewResult::Caller(Ok(false)) => {
                Err(DisconnectReason::ClosedByServer(4001, "session ended"))
            }
            ReviewResult::Rights(Ok(revoked)) => self.revoke(revoked).await,
            ReviewResult::Caller(Err(_)) | ReviewResult::Rights(Err(_)) => {
                Err(DisconnectReason::ClosedByServer(1013, "try again"))
            }
        }
    }

    async fn revoke(&mut self, revoked: RevokedAccess) -> Result<(), DisconnectReason> {
        let reason = "removed";
        // A request made under the old rights is refused.
        let is_revoked =
            |it: &mut Box<PendingSubscription>| revoked.conversations.contains(&it.conversation);
        let rejected = self.pending.take_if(is_revoked);
        // Unsubscribe first, then notify the client.
        for id in &revoked.conversations {
            self.subscriptions.remove(*id);
        }
        for id in &revoked.spaces {
            self.subscriptions.remove_space(*id);
        }
        for conversation_id in revoked.conversations {
            let event = Unsubscribed {
                conversation_id,
                reason,
            };
            self.send(&event).await?;
        }
        for space_id in revoked.spaces {
            self.send(&UnsubscribedSpace { space_id, reason }).await?;
        }
        if let Some(opening) = rejected {
            self.send_error(Some(opening.frame_id), ApiError::not_found())
                .await?;
        }
        self.end_memberships(&revoked.memberships).await
    }

    /// Continues without memberships that ended, for an admin: clients must subscribe again, because they
    /// show what only members see, for example the stream of a whispered reply.
    async fn end_memberships(
        &mut self,
        ended: &HashSet<MembershipId>,
    ) -> Result<(), DisconnectReason> {
        for id in self.subscriptions.take_memberships(ended) {
            match self.pending_for(id) {
                Some(pending) => {
                    // Its snapshot may have been read for the member.
                    pending.has_gap = true;
                    let message = "Your membership ended meanwhile. Subscribe again.";
                    self.reject_subscribe(ApiError::new(503, "internal", message))
                        .await?;
                }
                None => self.send_resync(id).await?,
            }
        }
        Ok(())
    }
}
