//! The gate: whatever happens to a conversation's schedule goes through [`step`].
//!
//! Lock the conversation, load the situation, decide, write, commit, announce.
//!
//! **Invariant:** everything a step changes commits together or not at all; no model, tool, HTTP
//! or Redis call happens in between; nothing is announced before the commit.

use crate::conversations::message;
use crate::conversations::timeline;
use crate::ids::ConversationId;
use crate::ids::RoundId;
use crate::ids::RunId;
use crate::runs::announce;
use crate::runs::command::Command;
use crate::runs::command::Post;
use crate::runs::command::Refusal;
use crate::runs::context::Context;
use crate::runs::draft::Fresh;
use crate::runs::error::EngineError;
use crate::runs::planner;
use crate::runs::situation;
use crate::runs::situation::Situation;
use crate::runs::writer::Writer;
use crate::runs::writer::Written;
use sea_orm::DatabaseTransaction;
use sea_orm::DbErr;

/// What a step did.
#[derive(Debug)]
pub struct Done {
    /// The conversation as it is now.
    pub situation: Situation,
    /// The message that was appended or changed, or that was there already.
    pub message: Option<message::Model>,
    /// The run that was claimed.
    pub claimed: Option<crate::runs::run::Model>,
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
        let place = usize::try_from(conversation.0).unwrap_or_default() % own.steps.len();
        let _in_order = own.steps[place].lock().await;
        let (done, written) = decide_and_write(&own, conversation, command).await?;
        crate::fail_point!("step.after_commit");
        announce::announce(&own, &done.situation, written);
        Ok(done)
    });
    task.await
        .unwrap_or_else(|_| Err(DbErr::Custom("the step's task ended".to_owned()).into()))
}

async fn decide_and_write(
    context: &Context,
    conversation: ConversationId,
    command: Command,
) -> Result<(Done, Written), EngineError> {
    let now = context.clock.now();
    let node = context.node.clone();
    let dialect = context.db.dialect();
    let fresh = Fresh {
        seed: rand::random(),
        round: RoundId::new(),
        run: RunId::new(),
    };
    context
        .db
        .write(move |tx| {
            Box::pin(async move {
                let situation = situation::load(tx, conversation, &command)
                    .await?
                    .ok_or(Refusal::NotFound)?;
                if let Some(first) = repeated(tx, conversation, &command).await? {
                    let done = Done {
                        situation,
                        message: Some(first),
                        claimed: None,
                        repeated: true,
                    };
                    return Ok((done, Written::default()));
                }
                let plan = planner::plan(&situation, &command, fresh, now)?;
                let writer = Writer {
                    tx,
                    now,
                    node: &node,
                    dialect,
                };
                let (situation, written) = writer.write(situation, plan).await?;
                let done = Done {
                    situation,
                    message: written.messages.last().map(|it| it.row.clone()),
                    claimed: written.claimed.clone(),
                    repeated: false,
                };
                Ok((done, written))
            })
        })
        .await
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
    match timeline::by_client_id(tx, conversation, *author, client_id).await? {
        None => Ok(None),
        Some(first) if first.content == *content || first.edited_at.is_some() => Ok(Some(first)),
        Some(_) => Err(Refusal::ClientIdReused.into()),
    }
}
