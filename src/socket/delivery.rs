//! What waits in the outbox, handed out: orders obeyed, envelopes judged and sent.

use crate::http::error::ApiError;
use crate::http::holder;
use crate::http::wire::End;
use crate::ids::ConversationId;
use crate::ids::SpaceId;
use crate::realtime::event::Cargo;
use crate::realtime::event::Envelope;
use crate::realtime::event::Order;
use crate::realtime::outbox::Next;
use crate::realtime::topic::Topic;
use crate::socket::errand::Revoked;
use crate::socket::frames;
use crate::socket::frames::Mended;
use crate::socket::frames::Resync;
use crate::socket::frames::Unsubscribed;
use crate::socket::frames::UnsubscribedSpace;
use crate::socket::guard::Reviewed;
use crate::socket::opening::Opening;
use crate::socket::session::Session;
use crate::socket::subscription::Verdict;
use bytestring::ByteString;
use std::sync::Arc;
use uuid::Uuid;

/// What is handed out in a row before the client is heard again.
const IN_A_ROW: usize = 32;

impl Session {
    /// Hands out what is next, and some of what waits behind it.
    pub(super) async fn take(&mut self, first: Next) -> Result<(), End> {
        self.hand_out(first).await?;
        for _ in 1..IN_A_ROW {
            match self.outbox.try_next() {
                Some(next) => self.hand_out(next).await?,
                None => break,
            }
        }
        Ok(())
    }

    pub(super) async fn hand_out(&mut self, next: Next) -> Result<(), End> {
        match next {
            Next::Order(Order::RightsChanged(space)) => {
                self.suspect(Some(space));
                Ok(())
            }
            Next::Order(Order::RoleLost) => {
                self.suspect(None);
                Ok(())
            }
            Next::Order(order) => match holder::ended_by(self.caller, order) {
                Some(end) => Err(end),
                None => Ok(()),
            },
            Next::Overflow => Err(End::Ours(4008, "slow")),
            Next::Lost(conversation) => self.lost(conversation).await,
            Next::Mark(_) => self.answer_opening().await,
            Next::Envelope(envelope) => match envelope.topic {
                Topic::Conversation(id) => self.hand_out_of(id, envelope).await,
                Topic::Space(id) if self.ears.hears_space(id) => self.pass_on(&envelope).await,
                Topic::User(_) => self.pass_on(&envelope).await,
                Topic::Space(_) => Ok(()),
            },
        }
    }

    /// Has what is heard of a space, or of all of them, looked at again.
    fn suspect(&mut self, space: Option<SpaceId>) {
        let is_free = self.is_free();
        let who = (&self.app, self.caller, &self.ears);
        self.guard.suspect(who, space, is_free);
    }

    async fn lost(&mut self, id: ConversationId) -> Result<(), End> {
        if let Some(opening) = self.opening_of(id) {
            opening.lost = true;
            return Ok(());
        }
        if !self.ears.hears(id) {
            return Ok(());
        }
        self.resync(id).await
    }

    async fn hand_out_of(
        &mut self,
        id: ConversationId,
        envelope: Arc<Envelope>,
    ) -> Result<(), End> {
        if let Some(opening) = self.opening_of(id) {
            opening.hold(envelope);
            return Ok(());
        }
        self.judge(id, &envelope).await
    }

    fn opening_of(&mut self, id: ConversationId) -> Option<&mut Opening> {
        self.opening
            .as_deref_mut()
            .filter(|it| it.conversation == id)
    }

    async fn judge(&mut self, id: ConversationId, envelope: &Envelope) -> Result<(), End> {
        let Some(filter) = self.ears.filter(id) else {
            return Ok(());
        };
        match filter.judge(&envelope.cargo) {
            Verdict::Drop => Ok(()),
            Verdict::Forward => self.pass_on(envelope).await,
            Verdict::Rest(frame) => self.outlet.send(frame).await,
            Verdict::Mend { run, end } => self.mend(id, run, end).await,
            Verdict::Resync => self.resync(id).await,
        }
    }

    /// Sends an envelope as it is.
    async fn pass_on(&mut self, envelope: &Envelope) -> Result<(), End> {
        let frame: &ByteString = match &envelope.cargo {
            Cargo::Frame { json, .. } | Cargo::Stream { json, .. } => json,
            Cargo::Delta(delta) => &delta.json,
            Cargo::Aside { json, except } if *except != self.caller.user => json,
            Cargo::Aside { .. } | Cargo::Order(_) => return Ok(()),
        };
        self.outlet.send(frame.clone()).await
    }

    async fn mend(&mut self, id: ConversationId, run: Uuid, end: usize) -> Result<(), End> {
        let live = self.app.engine.live_text(id);
        let live = live.filter(|it| it.run_id.0 == run);
        let text = live.as_ref().map(|it| it.text.as_str());
        let is_mended = self
            .ears
            .filter(id)
            .is_some_and(|it| it.mend(run, end, text));
        match text {
            Some(text) if is_mended => {
                let mended = Mended {
                    conversation_id: id,
                    run_id: run,
                    text,
                };
                self.tell(&mended).await
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn resync(&mut self, conversation_id: ConversationId) -> Result<(), End> {
        self.ears.lose(conversation_id);
        self.app.hub.meter().resyncs.inc();
        self.tell(&Resync { conversation_id }).await
    }

    /// Everything from before the mark is held back: the answer may go out, and they behind it.
    async fn answer_opening(&mut self) -> Result<(), End> {
        let Some(mut opening) = self.opening.take() else {
            return Ok(());
        };
        let Some(answer) = opening.answer.take() else {
            // The mark is set when the answer is known.
            return Ok(());
        };
        let (id, is_lost) = (opening.conversation, opening.lost);
        self.ears
            .attend(id, answer.opened.space, answer.opened.seat);
        let presence = self.app.presence.members(id);
        let frame = frames::snapshot(
            &opening.re,
            answer.opened.rev,
            &answer.opened.snapshot,
            &presence,
            answer.stream.as_ref(),
        );
        self.outlet.send(frame).await?;
        if is_lost {
            return self.resync(id).await;
        }
        let running = answer.opened.running.map(|(run, _)| run.0);
        self.app.hub.begun(id, answer.opened.rev, running);
        let (filter, held) = opening.release(&answer);
        self.ears.open(id, filter);
        self.judge_all(id, held).await
    }

    /// Judges what was held back, in its order.
    pub(super) async fn judge_all(
        &mut self,
        id: ConversationId,
        held: Vec<Arc<Envelope>>,
    ) -> Result<(), End> {
        for envelope in held {
            self.judge(id, &envelope).await?;
        }
        Ok(())
    }

    pub(super) async fn reviewed(&mut self, reviewed: Reviewed) -> Result<(), End> {
        match reviewed {
            Reviewed::Caller(Ok(true)) => Ok(()),
            Reviewed::Caller(Ok(false)) => Err(End::Ours(4001, "session ended")),
            Reviewed::Rights(Ok(revoked)) => self.revoke(revoked).await,
            Reviewed::Caller(Err(_)) | Reviewed::Rights(Err(_)) => {
                Err(End::Ours(1013, "try again"))
            }
        }
    }

    async fn revoke(&mut self, revoked: Revoked) -> Result<(), End> {
        let reason = "removed";
        // What was asked for under the rights of a moment ago is not answered by them.
        let is_revoked = |it: &mut Box<Opening>| revoked.conversations.contains(&it.conversation);
        let refused = self.opening.take_if(is_revoked);
        // First nothing more is heard; then it is told.
        for id in &revoked.conversations {
            self.ears.close(*id);
        }
        for id in &revoked.spaces {
            self.ears.close_space(*id);
        }
        for conversation_id in revoked.conversations {
            let event = Unsubscribed {
                conversation_id,
                reason,
            };
            self.tell(&event).await?;
        }
        for space_id in revoked.spaces {
            self.tell(&UnsubscribedSpace { space_id, reason }).await?;
        }
        match refused {
            Some(opening) => self.refuse(Some(opening.re), ApiError::not_found()).await,
            None => Ok(()),
        }
    }
}
