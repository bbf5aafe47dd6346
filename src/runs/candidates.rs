//! Copilot candidates: texts that a person might say, written by the model for that person's eyes
//! alone. No run is made and nothing is stored; the schedule never hears of it.
//!
//! **Invariant:** each candidate that was asked for is told once, as a text or as an error.
//!
//! **Invariant:** a seat has one generation under way; a newer one takes the place of the older.
//!
//! **Invariant:** a model is called only with a permit of this node, as for a run; candidates get
//! theirs after all due runs.

use crate::generation::model_call;
use crate::generation::outcome::GenerationFailure;
use crate::generation::outcome::GenerationOutcome;
use crate::generation::trim::ReplyTrimmer;
use crate::generation::usage::UsageTotal;
use crate::ids::ConversationId;
use crate::ids::GenerationId;
use crate::ids::MembershipId;
use crate::ids::ProviderId;
use crate::ids::RunId;
use crate::ids::SpaceId;
use crate::ids::UserId;
use crate::llm::request::Request;
use crate::realtime::event::Envelope;
use crate::realtime::event::Event;
use crate::realtime::topic::Topic;
use crate::runs::context::Context;
use crate::runs::due::Due;
use crate::runs::endings::token_limit_exceeded;
use crate::runs::engine::Engine;
use crate::runs::events::CopilotCandidate;
use crate::runs::events::CopilotCandidateError;
use crate::runs::executor;
use crate::runs::permits::Permit;
use crate::runs::preparation;
use crate::runs::preparation::Prepared;
use crate::runs::run;
use crate::spaces::membership;
use crate::spaces::space;
use dashmap::DashMap;
use futures::future::join_all;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use std::sync::Arc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// What somebody asks for.
#[derive(Clone, Debug)]
pub struct Wish {
    pub conversation: ConversationId,
    pub space: SpaceId,
    /// As whom.
    pub seat: MembershipId,
    /// Who sits there, and is told.
    pub user: UserId,
    /// How many texts.
    pub count: i64,
    /// What they should say.
    pub instruction: Option<String>,
}

/// The generations that this node has under way. Cloning gives another handle on the same ones.
#[derive(Clone, Default)]
pub struct Candidates {
    by_seat: Arc<DashMap<MembershipId, UnderWay>>,
}

struct UnderWay {
    generation: GenerationId,
    wish: Wish,
    stop: CancellationToken,
}

impl Candidates {
    fn note(&self, generation: GenerationId, wish: Wish, stop: CancellationToken) {
        let seat = wish.seat;
        let begun = UnderWay {
            generation,
            wish,
            stop,
        };
        if let Some(older) = self.by_seat.insert(seat, begun) {
            older.stop.cancel();
        }
    }

    fn ended(&self, seat: MembershipId, generation: GenerationId) {
        self.by_seat
            .remove_if(&seat, |_, it| it.generation == generation);
    }

    /// Drops the requests of those who match; each is told so.
    pub(super) fn stop(&self, matches: impl Fn(&Wish) -> bool) {
        for it in self.by_seat.iter().filter(|it| matches(&it.wish)) {
            it.stop.cancel();
        }
    }

    /// How many are under way.
    pub fn count(&self) -> usize {
        self.by_seat.len()
    }
}

impl Engine {
    /// Begins to write what a person might say. The texts are told to that person alone.
    pub fn suggest(&self, wish: Wish) -> GenerationId {
        let context = self.context.clone();
        let generation = GenerationId::new();
        let stop = context.shutdown.releasing.child_token();
        context
            .candidates
            .note(generation, wish.clone(), stop.clone());
        self.context.shutdown.spawn(async move {
            let task = Task {
                context: &context,
                generation,
                wish: &wish,
                stop,
            };
            task.write_all().await;
            context.candidates.ended(wish.seat, generation);
        });
        generation
    }

    /// A person has no socket left on this node: what is written here for them ends.
    pub fn nobody_listens(&self, user: UserId) {
        self.context.candidates.stop(|it| it.user == user);
    }
}

/// One generation.
struct Task<'a> {
    context: &'a Context,
    generation: GenerationId,
    wish: &'a Wish,
    stop: CancellationToken,
}

impl Task<'_> {
    async fn write_all(&self) {
        let seed = self.generation.0.as_u64_pair().1;
        let prepared = match self.prepare(seed).await {
            Ok(prepared) => prepared,
            Err(failure) => {
                let error = error_of(failure);
                return (0..self.wish.count).for_each(|index| self.tell_error(index, &error));
            }
        };
        let trim = executor::trim(&prepared.speaker, &prepared.others);
        let all = (0..self.wish.count).map(|index| {
            let request = Request {
                seed: seed.wrapping_add_signed(index),
                ..prepared.request.clone()
            };
            self.write(index, &prepared, request, trim.clone())
        });
        join_all(all).await;
    }

    async fn prepare(&self, seed: u64) -> Result<Prepared, GenerationFailure> {
        let wish = self.wish;
        let db = self.context.db.reader();
        let space = space::Entity::find_by_id(wish.space).one(db).await;
        if space.is_ok_and(|it| it.is_some_and(|it| it.has_reached_token_limit(0))) {
            return Err(token_limit_exceeded());
        }
        let instruction = wish.instruction.clone();
        preparation::prepare_candidate(
            self.context,
            wish.conversation,
            wish.seat,
            instruction,
            seed,
        )
        .await
    }

    async fn write(&self, index: i64, prepared: &Prepared, request: Request, trim: ReplyTrimmer) {
        let provider = prepared.provider.as_ref();
        let watches = &self.context.settings.watches;
        let permit = match self.permit(prepared.provider_id).await {
            Ok(permit) => permit,
            Err(error) => return self.tell_error(index, &error),
        };
        let mut text = String::new();
        let outcome =
            model_call::generate(provider, &request, trim, watches, &mut text, &self.stop).await;
        drop(permit);
        let (usage, told) = match outcome {
            GenerationOutcome::Succeeded { text, usage, .. } => (usage, Ok(text)),
            GenerationOutcome::Failed { failure, usage, .. } => (usage, Err(error_of(failure))),
            GenerationOutcome::Canceled { usage, .. } => (usage, Err(dropped())),
        };
        if let Some(usage) = usage
            && let Err(error) = self.spend(usage).await
        {
            tracing::warn!(space.id = %self.wish.space, %error, "tokens of a candidate were not counted: {error}");
        }
        match told {
            Ok(text) if self.may_still_speak().await => self.tell(&CopilotCandidate {
                generation_id: self.generation,
                membership_id: self.wish.seat,
                index,
                text,
            }),
            Ok(_) => self.tell_error(index, &dropped()),
            Err(error) => self.tell_error(index, &error),
        }
    }

    /// Waits for a permit, for as long as one waits for a model to begin.
    async fn permit(&self, provider: ProviderId) -> Result<Permit, run::Error> {
        let context = self.context;
        let now = context.clock.now();
        let due = Due {
            id: RunId::new(), // its own; there is no such run
            conversation_id: self.wish.conversation,
            space_id: self.wish.space,
            run_after: Some(now),
            created_at: now,
            provider_id: Some(provider),
        };
        let mut permit = context.permits.of_candidate(due, &context.bell);
        tokio::select! {
            () = self.stop.cancelled() => Err(dropped()),
            () = permit.granted() => Ok(permit),
            () = sleep(context.settings.watches.first_chunk) => Err(no_place()),
        }
    }

    async fn spend(&self, usage: UsageTotal) -> Result<(), DbErr> {
        let (space, tokens) = (self.wish.space, usage.total());
        let db = &self.context.db;
        db.write(move |tx| Box::pin(async move { space::add_tokens_used(tx, space, tokens).await }))
            .await
    }

    /// The seat may have been lost at another node meanwhile.
    async fn may_still_speak(&self) -> bool {
        let db = self.context.db.reader();
        let seat = membership::Entity::find_by_id(self.wish.seat).one(db).await;
        seat.is_ok_and(|it| it.is_some_and(|it| may_speak(&it, self.wish.user)))
    }

    fn tell_error(&self, index: i64, error: &run::Error) {
        self.tell(&CopilotCandidateError {
            generation_id: self.generation,
            index,
            error: error.clone(),
        });
    }

    fn tell(&self, event: &impl Event) {
        let topic = Topic::User(self.wish.user);
        self.context.hub.publish(Envelope::plain(topic, event));
    }
}

/// Whether this user still sits there, with a voice.
fn may_speak(seat: &membership::Model, user: UserId) -> bool {
    seat.user_id == Some(user)
        && seat.status == membership::MembershipStatus::Active
        && seat.participation != membership::Participation::Observer
}

/// A seat has changed: nothing more is written for who has lost it, or their voice.
pub(super) async fn seat_changed(context: &Context, id: MembershipId) -> Result<(), DbErr> {
    let Some(user) = context.candidates.by_seat.get(&id).map(|it| it.wish.user) else {
        return Ok(());
    };
    let seat = membership::Entity::find_by_id(id)
        .one(context.db.reader())
        .await?;
    if !seat.is_some_and(|it| may_speak(&it, user)) {
        context.candidates.stop(|it| it.seat == id);
    }
    Ok(())
}

fn error_of(failure: GenerationFailure) -> run::Error {
    run::Error {
        code: failure.code.to_string(),
        message: failure.message,
        retryable: failure.is_retryable,
    }
}

fn no_place() -> run::Error {
    run::Error {
        code: "rate_limited".to_owned(),
        message: "The model is busy with replies. Try again in a moment.".to_owned(),
        retryable: true,
    }
}

fn dropped() -> run::Error {
    run::Error {
        code: "canceled".to_owned(),
        message: "This suggestion was stopped before it was written.".to_owned(),
        retryable: true,
    }
}
