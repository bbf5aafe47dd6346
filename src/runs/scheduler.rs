//! The gate: whatever happens to a conversation's schedule goes through [`step`], or through
//! [`claim`], which takes many steps of one kind at once.
//!
//! Lock the conversation, load the situation, decide, write, commit, announce.
//!
//! **Invariant:** everything a step changes commits together or not at all; no model, tool, HTTP
//! or Redis call happens in between; nothing is announced before the commit.

use crate::clock::Timestamp;
use crate::conversations::conversation;
use crate::conversations::message;
use crate::conversations::timeline;
use crate::db::connect::Backend;
use crate::ids::ConversationId;
use crate::ids::RoundId;
use crate::ids::RunId;
use crate::ids::SpaceId;
use crate::runs::announce;
use crate::runs::command::Command;
use crate::runs::command::Post;
use crate::runs::command::Refusal;
use crate::runs::context::Context;
use crate::runs::draft::Fresh;
use crate::runs::due::Due;
use crate::runs::error::EngineError;
use crate::runs::fairness::Held;
use crate::runs::planner;
use crate::runs::run;
use crate::runs::situation;
use crate::runs::situation::Situation;
use crate::runs::writer::Writer;
use crate::runs::writer::Written;
use crate::spaces::membership;
use futures::future::join_all;
use sea_orm::DatabaseTransaction;
use sea_orm::DbErr;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::collections::hash_map;
use std::sync::Arc;

/// What a step did.
#[derive(Debug)]
pub struct Done {
    /// The conversation as it is now.
    pub situation: Situation,
    /// The message that was appended or changed, or that was there already.
    pub message: Option<message::Model>,
    /// The run that was claimed.
    pub claimed: Option<run::Model>,
    /// The command had been carried out before; nothing was done now.
    pub repeated: bool,
}

/// Carries out a command on a conversation.
///
/// Runs to its end even when the caller is dropped half-way: what is committed is announced.
///
/// # Errors
/// The refusal of the planner, a lost race, or the database's failure. Nothing was changed then.
pub async fn step(
    context: &Context,
    conversation: ConversationId,
    command: Command,
) -> Result<Done, EngineError> {
    let own = context.clone();
    let task = context.shutdown.spawn(async move {
        let _in_order = own.step_locks.lock(conversation).await?;
        loop {
            let decided = decide_and_write(&own, conversation, command.clone()).await?;
            if let Some((done, written)) = decided {
                crate::fail_point!("step.after_commit");
                announce::announce(&own, &done.situation, written);
                return Ok(done);
            }
            // A change of settings comes first.
            let applied = decide_and_write(&own, conversation, Command::ApplyChanges).await?;
            if let Some((done, written)) = applied {
                crate::fail_point!("step.after_commit");
                announce::announce(&own, &done.situation, written);
            }
        }
    });
    task.await
        .unwrap_or_else(|_| Err(DbErr::Custom("the step's task ended".to_owned()).into()))
}

/// A run that is ours now.
#[derive(Debug)]
pub struct Claimed {
    /// The place it holds.
    pub held: Held,
    pub run: run::Model,
    /// The conversation as it was claimed in: what its prompt is made of.
    pub situation: Situation,
}

/// What a look at many due runs came to.
#[derive(Debug, Default)]
pub struct Claims {
    pub runs: Vec<Claimed>,
    /// How many of them were decided: claimed, passed over, or found to be gone.
    pub n_decided: usize,
    /// A step of this node has the conversation; another node's is waited for by nobody.
    pub busy_here: Option<ConversationId>,
}

/// Decides many due runs at once, in one transaction: a step each, as [`step`] with
/// [`Command::Due`] would take it. A conversation that somebody else has is left to them. Where one
/// spoils the transaction, each is decided by itself.
///
/// # Errors
/// When the task ended half-way; every other failure is logged, and the runs stay queued.
pub async fn claim(context: &Context, due: Vec<Due>) -> Result<Claims, DbErr> {
    let own = context.clone();
    let task = context
        .shutdown
        .spawn(async move { claim_here(&own, due).await });
    task.await
        .map_err(|_| DbErr::Custom("the claim's task ended".to_owned()))
}

async fn claim_here(context: &Context, due: Vec<Due>) -> Claims {
    let mut claims = Claims::default();
    let mut in_order = Vec::new();
    let mut ready = Vec::new();
    for it in due {
        // Never waited for: who waits with locks in hand makes others wait.
        let Some(lock) = context.step_locks.try_lock(it.conversation_id) else {
            claims.busy_here = Some(it.conversation_id);
            continue;
        };
        in_order.push(lock);
        ready.push(it);
    }
    match decide_all(context, &ready).await {
        Ok((all, marked)) => {
            crate::fail_point!("step.after_commit");
            claims.n_decided = all.len();
            for (done, written) in all {
                announce::announce(context, &done.situation, written);
                claims.take(&ready, done);
            }
            drop(in_order);
            let marked = ready
                .iter()
                .filter(|it| marked.contains(&it.conversation_id));
            for done in join_all(marked.map(|it| step_when_due(context, it))).await {
                claims.n_decided += 1;
                if let Some(done) = done {
                    claims.take(&ready, done);
                }
            }
        }
        Err(error) => {
            tracing::warn!(%error, runs = ready.len(), "due runs could not be claimed together, each is tried by itself: {error}");
            drop(in_order);
            let each = ready.iter().map(|it| step_when_due(context, it));
            for done in join_all(each).await {
                claims.n_decided += 1;
                if let Some(done) = done {
                    claims.take(&ready, done);
                }
            }
        }
    }
    claims
}

impl Claims {
    fn take(&mut self, due: &[Due], done: Done) {
        let Some(run) = done.claimed else {
            return;
        };
        let due = due.iter().find(|it| it.id == run.id);
        self.runs.extend(due.map(|it| Claimed {
            held: Held::by(it),
            run,
            situation: done.situation,
        }));
    }
}

async fn step_when_due(context: &Context, due: &Due) -> Option<Done> {
    match step(context, due.conversation_id, Command::Due { run: due.id }).await {
        Ok(done) => Some(done),
        Err(EngineError::Database(error)) => {
            tracing::warn!(run.id = %due.id, %error, "run {} could not be claimed: {error}", due.id);
            None
        }
        Err(_) => None, // somebody else was faster
    }
}

/// What was decided at once, and the conversations to which a change must be applied first.
type Decided = (Vec<(Done, Written)>, Vec<ConversationId>);

/// Decides all that nobody else has. Where a change of settings must be applied first, nothing is
/// decided and the conversation is returned.
async fn decide_all(context: &Context, due: &[Due]) -> Result<Decided, EngineError> {
    let hand = Hand::of(context);
    let runs: BTreeMap<ConversationId, RunId> =
        due.iter().map(|it| (it.conversation_id, it.id)).collect();
    context
        .db
        .write_verified(
            move |tx| {
                Box::pin(async move {
                    let (mut all, mut marked) = (Vec::new(), Vec::new());
                    let mut members: HashMap<SpaceId, Vec<membership::Model>> = HashMap::new();
                    for (row, space) in
                        conversation::lock_available(tx, runs.keys().copied()).await?
                    {
                        if row.needs_step {
                            marked.push(row.id);
                            continue;
                        }
                        let command = Command::Due { run: runs[&row.id] };
                        let members = match members.entry(space.id) {
                            hash_map::Entry::Occupied(known) => known.get().clone(),
                            hash_map::Entry::Vacant(place) => {
                                let loaded = membership::list_active(tx, space.id).await?;
                                place.insert(loaded).clone()
                            }
                        };
                        let situation = situation::load_locked(tx, row, space, members, &command);
                        all.push(hand.decide(tx, situation.await?, &command).await?);
                    }
                    Ok((all, marked))
                })
            },
            |(all, _): &Decided| all.iter().find_map(|(_, it)| it.proof.clone()),
        )
        .await
}

/// Returns when no step of this node has the conversation.
pub async fn until_free(context: &Context, conversation: ConversationId) {
    context.step_locks.until_free(conversation).await;
}

/// `None`: nothing was decided, because a change of settings must be applied first.
async fn decide_and_write(
    context: &Context,
    conversation: ConversationId,
    command: Command,
) -> Result<Option<(Done, Written)>, EngineError> {
    let hand = Hand::of(context);
    context
        .db
        .write_verified(
            move |tx| {
                Box::pin(async move {
                    let situation = situation::load(tx, conversation, &command)
                        .await?
                        .ok_or(Refusal::NotFound)?;
                    if situation.conversation.needs_step
                        && !matches!(command, Command::ApplyChanges | Command::Closed(_))
                    {
                        return Ok(None);
                    }
                    hand.decide(tx, situation, &command).await.map(Some)
                })
            },
            |decided: &Option<(Done, Written)>| {
                decided.as_ref().and_then(|(_, it)| it.proof.clone())
            },
        )
        .await
}

/// Who decides, and when.
#[derive(Clone)]
struct Hand {
    now: Timestamp,
    node: Arc<str>,
    dialect: Backend,
}

impl Hand {
    fn of(context: &Context) -> Self {
        Self {
            now: context.clock.now(),
            node: context.node.clone(),
            dialect: context.db.backend(),
        }
    }

    /// Decides and writes; the conversation is locked.
    async fn decide(
        &self,
        tx: &DatabaseTransaction,
        situation: Situation,
        command: &Command,
    ) -> Result<(Done, Written), EngineError> {
        if let Some(first) = repeated(tx, situation.conversation.id, command).await? {
            let done = Done {
                situation,
                message: Some(first),
                claimed: None,
                repeated: true,
            };
            return Ok((done, Written::default()));
        }
        let fresh = Fresh {
            seed: rand::random(),
            round: RoundId::new(),
            run: RunId::new(),
        };
        let plan = planner::plan(&situation, command, fresh, self.now)?;
        let writer = Writer {
            tx,
            now: self.now,
            node: &self.node,
            dialect: self.dialect,
        };
        let (mut situation, written) = writer.write(situation, plan).await?;
        if situation.conversation.needs_step {
            conversation::clear_needs_step(tx, &[situation.conversation.id]).await?;
            situation.conversation.needs_step = false;
        }
        let done = Done {
            situation,
            message: written.messages.last().map(|it| it.row.clone()),
            claimed: written.claimed.clone(),
            repeated: false,
        };
        Ok((done, written))
    }
}

/// The first message of a post whose `client_id` came before: the answer to this one too, which
/// plans nothing again. Looked for under the lock, as the first may have been under way.
async fn repeated(
    tx: &DatabaseTransaction,
    conversation: ConversationId,
    command: &Command,
) -> Result<Option<message::Model>, EngineError> {
    let Command::Posted(Post {
        author,
        content,
        client_id: Some(client_id),
        ..
    }) = command
    else {
        return Ok(None);
    };
    match timeline::find_by_client_id(tx, conversation, *author, client_id).await? {
        None => Ok(None),
        Some(first) if first.content == *content || first.edited_at.is_some() => Ok(Some(first)),
        Some(_) => Err(Refusal::ClientIdReused.into()),
    }
}
