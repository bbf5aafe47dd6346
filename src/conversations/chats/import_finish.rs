//! The last transaction of a chat import: makes its conversations visible in the target space, with
//! the memberships and lorebooks that were created for them.

use base::clock::Timestamp;
use base::ids::{ConversationId, SpaceId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait,
    IntoActiveModel, QueryFilter,
};
use serde_json::{Map, Value, json};
use tavern::chats::line_report::LineReport;
use tavern::chats::message::ChatHeader;
use tavern::import_warning::ImportWarning;

use crate::conversations::chats::chat_lore::{ChatLore, StoreChatLore};
use crate::conversations::chats::import_job;
use crate::conversations::chats::import_writer::ChatImportError;
use crate::conversations::{conversation, newest_messages};
use crate::db::connect::Db;
use crate::spaces::{membership, space};

/// A conversation whose messages are written.
#[derive(Clone, Debug)]
pub struct WrittenChat {
    pub conversation: ConversationId,
    pub last_seq: i64,
    pub title: String,
    pub header: ChatHeader,
}

/// The input of the last transaction of a chat import.
#[derive(Clone, Debug)]
pub struct ChatImportResult {
    pub import: import_job::Model,
    pub target: SpaceId,
    /// In the order of the file, at least one.
    pub chats: Vec<WrittenChat>,
    pub bytes_read: u64,
    pub report: LineReport,
    pub store_lore: StoreChatLore,
    pub now: Timestamp,
}

/// Makes the conversations visible, with the memberships that were created for them. The import
/// names the first one.
///
/// # Errors
/// Returns `Canceled` when the import has ended, `SpaceNotFound` when the target is gone, and `Db`
/// when the database fails; then nothing is visible.
pub async fn finish(
    db: &Db,
    result: ChatImportResult,
) -> Result<Vec<conversation::Model>, ChatImportError> {
    db.write(move |tx| Box::pin(finish_in(tx, result))).await
}

async fn finish_in(
    tx: &DatabaseTransaction,
    result: ChatImportResult,
) -> Result<Vec<conversation::Model>, ChatImportError> {
    let id = result.import.id;
    let bytes_read = i64::try_from(result.bytes_read).unwrap_or(i64::MAX);
    let n_messages = result.chats.iter().map(|it| it.last_seq).sum();
    if !import_job::save_progress(tx, id, bytes_read, n_messages).await? {
        return Err(ChatImportError::Canceled);
    }
    let space = space::lock(tx, result.target).await?;
    let is_open = |it: &space::Model| it.status == space::SpaceStatus::Active && !it.is_hidden;
    let space = space
        .filter(is_open)
        .ok_or(ChatImportError::SpaceNotFound)?;
    let hidden = result
        .import
        .hidden_space_id
        .ok_or(ChatImportError::Canceled)?;
    move_memberships(tx, hidden, space.id).await?;
    let mut report = result.report;
    let mut n_effects_left_out = 0;
    let mut rows = Vec::new();
    for chat in result.chats {
        let (conversation, last_seq, title) = (chat.conversation, chat.last_seq, chat.title);
        let lore = ChatLore {
            owner: result.import.user_id,
            conversation,
            lorebook: chat.header.lorebook,
            timed_effects: chat.header.timed_effects,
        };
        let stored = (result.store_lore)(tx, lore, result.now).await?;
        n_effects_left_out += stored.n_effects_left_out;
        let mut variables = Map::new();
        if !chat.header.variables.is_empty() {
            variables.insert("macros".to_owned(), json!(chat.header.variables));
        }
        variables.extend(stored.state.map(|it| ("lore".to_owned(), it)));
        let row = conversation::ActiveModel {
            id: Set(conversation),
            space_id: Set(space.id),
            title: Set(title),
            settings: Set(Value::Object(chat.header.settings)),
            variables: Set(Value::Object(variables)),
            last_seq: Set(last_seq),
            ..Default::default()
        };
        row.update(tx).await?;
        newest_messages::refresh(tx, conversation).await?;
        let row = conversation::Entity::find_by_id(conversation)
            .one(tx)
            .await?;
        rows.push(row.ok_or(ChatImportError::SpaceNotFound)?);
    }
    if n_effects_left_out > 0 {
        report.warn(&[effects_left_out(n_effects_left_out)]);
    }
    let mut import = result.import.into_active_model();
    import.status = Set(import_job::ImportStatus::Succeeded);
    import.hidden_space_id = Set(None);
    import.conversation_id = Set(rows.first().map(|it| it.id));
    import.report = Set(json!({ "report": report }));
    import.finished_at = Set(Some(result.now));
    import.update(tx).await?;
    space::Entity::delete_by_id(hidden).exec(tx).await?;
    Ok(rows)
}

/// Warns about timed effects whose lorebook or entry does not exist.
pub fn effects_left_out(n: usize) -> ImportWarning {
    let sentence = format!(
        "{n} timed effects of World Info were left out, because their lorebook or entry is not in \
         your library."
    );
    ImportWarning::new("timed_effects_left_out", sentence).with("n", n)
}

/// Moves the new memberships to the end of the roster.
async fn move_memberships(
    tx: &impl ConnectionTrait,
    from: SpaceId,
    to: SpaceId,
) -> Result<(), DbErr> {
    use membership::Column;
    let next = membership::next_position(tx, to).await?;
    membership::Entity::update_many()
        .col_expr(Column::SpaceId, Expr::value(to))
        .col_expr(Column::Position, Expr::col(Column::Position).add(next))
        .filter(Column::SpaceId.eq(from))
        .exec(tx)
        .await
        .map(|_| ())
}
