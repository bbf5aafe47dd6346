//! Loads the newest messages of a conversation that can fit into a prompt, and counts the messages
//! of a role.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId, PersonaId};
use sea_orm::sea_query::{Expr, ExprTrait, Func, Query, SelectStatement, SimpleExpr};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
};

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::message;
use crate::conversations::message::{Column, Entity, MessageRole};
use crate::prompt::budget::MESSAGE_OVERHEAD;
use crate::prompt::history::history_window::MAX_MESSAGES;
use crate::prompt::loading::history_filter::HistoryFilter;

/// A message of the history, without what a prompt does not need.
#[derive(Clone, Debug, PartialEq, Eq, FromQueryResult)]
pub struct HistoryMessage {
    pub id: MessageId,
    pub seq: i64,
    pub space_membership_id: MembershipId,
    pub persona_id: Option<PersonaId>,
    pub persona_name: Option<String>,
    pub role: MessageRole,
    pub content: String,
    pub active_swipe: i64,
    pub reply_to_message_id: Option<MessageId>,
    pub has_attachments: bool,
    pub audience: Option<Audience>,
    pub created_at: Timestamp,
    pub token_count: i64,
}

impl From<&message::Model> for HistoryMessage {
    fn from(row: &message::Model) -> Self {
        Self {
            id: row.id,
            seq: row.seq,
            space_membership_id: row.space_membership_id,
            persona_id: row.persona_id,
            persona_name: row.persona_name.clone(),
            role: row.role,
            content: row.content.clone(),
            active_swipe: row.active_swipe,
            reply_to_message_id: row.reply_to_message_id,
            has_attachments: row.has_attachments,
            audience: row.audience.clone(),
            created_at: row.created_at,
            token_count: row.token_count,
        }
    }
}

impl HistoryMessage {
    /// Returns whether the filter of a prompt accepts it.
    pub fn is_accepted_by(&self, filter: &HistoryFilter) -> bool {
        filter.accepts(self.audience.as_ref(), self.created_at)
    }
}

/// Returns the newest messages that can fit, and one more, ascending. The database adds up the token
/// counts, so that messages that do not fit are not read. The filter decides which messages count; the
/// whispers among them that it leaves out are returned, too, for the prompts of other speakers.
pub async fn load_history(
    db: &impl ConnectionTrait,
    id: ConversationId,
    cutoff_seq: i64,
    available_tokens: i64,
    filter: &HistoryFilter,
) -> Result<Vec<HistoryMessage>, DbErr> {
    let too_long = select_first_too_long(id, cutoff_seq, available_tokens, filter);
    let too_long = SimpleExpr::SubQuery(None, Box::new(too_long.into()));
    let heard = filter.heard_since.map(|it| Column::CreatedAt.gte(it));
    sendable(id, cutoff_seq)
        .filter(Condition::all().add_option(heard))
        .select_only()
        .columns([
            Column::Id,
            Column::Seq,
            Column::SpaceMembershipId,
            Column::PersonaId,
            Column::PersonaName,
            Column::Role,
            Column::Content,
            Column::ActiveSwipe,
            Column::ReplyToMessageId,
            Column::HasAttachments,
            Column::Audience,
            Column::CreatedAt,
            Column::TokenCount,
        ])
        .filter(Expr::col(Column::Seq).gte(Func::coalesce([too_long, Expr::value(0)])))
        .order_by_asc(Column::Seq)
        .into_model::<HistoryMessage>()
        .all(db)
        .await
}

/// Selects the position of the newest message that does not fit together with all newer ones, or is one too
/// many; no row if all fit.
///
/// There is no `ORDER BY`, because SQLite would then read the whole conversation. Both databases
/// return the rows in the order of the window and stop at the first; in any other order, more
/// messages would be read and then dropped.
fn select_first_too_long(
    id: ConversationId,
    cutoff_seq: i64,
    available_tokens: i64,
    filter: &HistoryFilter,
) -> SelectStatement {
    let newer = "OVER (ORDER BY seq DESC ROWS UNBOUNDED PRECEDING)";
    let total = format!("SUM(token_count + {MESSAGE_OVERHEAD}) {newer}");
    let totals = sendable(id, cutoff_seq)
        .filter(filter.condition())
        .select_only()
        .column(Column::Seq)
        .expr_as(Expr::cust(total), "total")
        .expr_as(Expr::cust(format!("COUNT(*) {newer}")), "n_messages")
        .into_query();
    let max_messages = i64::try_from(MAX_MESSAGES).unwrap_or(i64::MAX);
    let is_too_long = Expr::col("total").gt(available_tokens);
    Query::select()
        .column("seq")
        .from_subquery(totals, "totals")
        .and_where(is_too_long.or(Expr::col("n_messages").gt(max_messages)))
        .limit(1)
        .to_owned()
}

/// Returns the newest messages up to `cutoff_seq` that a prompt may contain, the newest first.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_newest(
    db: &impl ConnectionTrait,
    id: ConversationId,
    (cutoff_seq, limit): (i64, u64),
    filter: &HistoryFilter,
) -> Result<Vec<message::Model>, DbErr> {
    let newest = sendable(id, cutoff_seq)
        .filter(filter.condition())
        .order_by_desc(Column::Seq);
    newest.limit(limit).all(db).await
}

/// Returns the number of messages with `role` up to `cutoff_seq`, of those that a prompt may contain.
pub async fn count_by_role(
    db: &impl ConnectionTrait,
    id: ConversationId,
    role: MessageRole,
    cutoff_seq: i64,
    filter: &HistoryFilter,
) -> Result<i64, DbErr> {
    let of_side = sendable(id, cutoff_seq)
        .filter(filter.condition())
        .filter(Column::Role.eq(role));
    let n = of_side.count(db).await?;
    Ok(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Returns whether a conversation has a message from before that time that a prompt may include.
pub async fn has_message_before(
    db: &impl ConnectionTrait,
    id: ConversationId,
    time: Timestamp,
) -> Result<bool, DbErr> {
    let older = sendable(id, i64::MAX).filter(Column::CreatedAt.lt(time));
    let found: Option<MessageId> = older
        .select_only()
        .column(Column::Id)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?;
    Ok(found.is_some())
}

/// Selects the messages that the prompt of some speaker may include.
fn sendable(id: ConversationId, cutoff_seq: i64) -> Select<Entity> {
    Entity::find()
        .filter(Column::ConversationId.eq(id))
        // A literal, so that the partial index applies also to a plan for any values.
        .filter(Expr::cust("messages.visibility = 'normal'"))
        .filter(Expr::cust("NOT messages.is_ooc"))
        .filter(Expr::cust("NOT messages.is_for_people"))
        .filter(Column::Seq.lte(cutoff_seq))
}
