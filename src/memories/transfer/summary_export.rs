//! Writes the summaries of a space that are in use as JSON Lines.
//!
//! **Invariant:** all lines are from one snapshot of the database, and only one chunk of them is in main
//! memory. The text of a deleted message is in no file, so a summary that covers one has no text in it.

use std::collections::HashMap;

use base::ids::{SpaceId, SummaryId, UserId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};
use tokio::sync::mpsc;

use crate::accounts::user;
use crate::db::connect::Db;
use crate::memories::error::MemoryError;
use crate::memories::summaries::summary;
use crate::memories::summaries::summary::{Model, SummaryLevel};
use crate::memories::transfer::summary_line;
use crate::memories::transfer::summary_line::ExportedSummary;

/// The number of summaries in a chunk; a text has at most 32 KB.
const CHUNK: usize = 100;

/// Sends the summaries to a channel, as events with lines, grouped by conversation and in the order of their
/// messages.
///
/// # Errors
/// Returns the database's error, or `Io` if the receiver is gone.
pub async fn send_lines<T: Send + 'static>(
    db: &Db,
    space: SpaceId,
    send: mpsc::Sender<T>,
    event: fn(Vec<u8>) -> T,
) -> Result<(), MemoryError> {
    db.read(move |tx| {
        Box::pin(async move {
            let ids = summary::list_ids_in_use(tx, space).await?;
            for ids in ids.chunks(CHUNK) {
                let lines = chunk(tx, ids).await?;
                let gone = |_| std::io::Error::other("the receiver was dropped");
                send.send(event(lines)).await.map_err(gone)?;
            }
            Ok(())
        })
    })
    .await
}

async fn chunk(tx: &impl ConnectionTrait, ids: &[SummaryId]) -> Result<Vec<u8>, MemoryError> {
    let found = summary::Entity::find().filter(summary::Column::Id.is_in(ids.iter().copied()));
    let rows = found.all(tx).await?.into_iter();
    let mut rows: HashMap<SummaryId, Model> = rows.map(|it| (it.id, it)).collect();
    let names = usernames(tx, rows.values().filter_map(|it| it.created_by)).await?;
    let mut lines = Vec::new();
    for row in ids.iter().filter_map(|id| rows.remove(id)) {
        if let Some(line) = line(row, &names) {
            summary_line::write(&mut lines, &line).map_err(std::io::Error::from)?;
        }
    }
    Ok(lines)
}

async fn usernames(
    tx: &impl ConnectionTrait,
    ids: impl Iterator<Item = UserId>,
) -> Result<HashMap<UserId, String>, DbErr> {
    let named: Vec<(UserId, String)> = user::Entity::find()
        .filter(user::Column::Id.is_in(ids))
        .select_only()
        .columns([user::Column::Id, user::Column::Username])
        .into_tuple()
        .all(tx)
        .await?;
    Ok(named.into_iter().collect())
}

/// Returns the line of a summary; `None` for a part whose text may not be used, because a part has
/// nothing else.
fn line(row: Model, names: &HashMap<UserId, String>) -> Option<ExportedSummary> {
    if !row.is_usable && row.level == SummaryLevel::Part {
        return None;
    }
    let view = row.view();
    Some(ExportedSummary {
        conversation: row.conversation_id.0,
        level: view.level,
        from_seq: row.from_seq,
        to_seq: row.to_seq,
        content: match row.is_usable {
            true => row.content,
            false => String::new(),
        },
        pinned_facts: view.pinned_facts,
        status: row.status,
        origin: row.origin,
        model: row.model,
        author: row.created_by.and_then(|it| names.get(&it).cloned()),
        is_usable: row.is_usable,
        created_at: row.created_at,
    })
}
