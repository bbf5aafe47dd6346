//! Creates branches, conversations that start with copies of another conversation's messages up to
//! a given message: inserts the row, and copies messages and swipes at once or batch by batch. Loads
//! the ancestors of a branch.
//!
//! **Invariant:** the database copies the rows; the number of statements does not depend on the
//! number of messages, and every database executes the same ones. A copy keeps its position, its
//! swipes and the active one; its reactions; `origin_message_id` names the message it was copied from. A branch
//! that is copied in several batches is hidden until it is complete.

use std::collections::BTreeMap;

use base::clock::Timestamp;
use base::ids::ConversationId;
use sea_orm::ActiveValue::NotSet;
use sea_orm::sea_query::{
    Expr, ExprTrait, InsertStatement, IntoIden, Order, Query, SelectStatement, SimpleExpr,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, Iterable,
    QueryFilter, Statement,
};

use crate::attachments::attachment;
use crate::conversations::annotations::reaction;
use crate::conversations::{conversation, message, newest_messages, read_mark, swipe};

/// The `rev` of the clones. A client that has seen no event (`rev` 0) therefore gets all of them.
const FIRST_REV: i64 = 1;

/// A branch to be created.
#[derive(Clone, Debug)]
pub struct NewBranch {
    pub title: String,
    /// The size of the texts to copy, in bytes.
    pub text_bytes: i64,
    /// Whether it is copied in batches and invisible until [`make_visible`].
    pub is_hidden: bool,
    pub now: Timestamp,
}

/// Inserts the row of a branch of `parent`, which is locked; the branch has no messages yet.
pub async fn insert_branch(
    tx: &impl ConnectionTrait,
    parent: &conversation::Model,
    fork: &message::Model,
    new: NewBranch,
) -> Result<conversation::Model, DbErr> {
    // What was forgotten in the parent is not summarized in the branch either.
    let summary_from_seq = Ord::min(parent.summary_from_seq, fork.seq + 1);
    let mut row = conversation::Model {
        kind: conversation::ConversationKind::Branch,
        title: new.title,
        parent_conversation_id: Some(parent.id),
        forked_from_message_id: Some(fork.id),
        rev: FIRST_REV,
        last_seq: fork.seq,
        last_speaker_membership_id: None, // set when the messages exist
        last_assistant_seq: None,
        last_user_seq: None,
        needs_step: false,
        created_at: new.now,
        last_run_seq: 0,
        auto_mode_turns: 0,
        archived_at: None,
        is_hidden: new.is_hidden,
        text_bytes: new.text_bytes,
        tokens_used: 0,
        unlearned_from_seq: None,
        prompt_starts: serde_json::json!([]),
        summary_from_seq,
        summary_goal_seq: summary_from_seq - 1,
        ..parent.clone() // settings and variables are copied
    }
    .into_active_model()
    .reset_all();
    row.id = NotSet;
    conversation::Entity::insert(row)
        .exec_with_returning(tx)
        .await
}

/// Copies the visible messages after the first `seq` up to the second. Returns the size of the
/// copied texts in bytes. The parent is locked.
pub async fn copy_messages(
    tx: &impl ConnectionTrait,
    parent: &conversation::Model,
    branch: ConversationId,
    part: (i64, i64),
) -> Result<i64, DbErr> {
    tx.execute(&clone_messages(parent.id, branch, part)).await?;
    tx.execute(&clone_swipes(branch, part)).await?;
    clone_annotations(tx, branch, part).await?;
    sum_text_bytes(tx, branch, part).await
}

/// Makes a branch that was copied in batches visible. The parent is locked.
pub async fn make_visible(
    tx: &impl ConnectionTrait,
    parent: &conversation::Model,
    branch: &conversation::Model,
    text_bytes: i64,
) -> Result<(), DbErr> {
    tx.execute(&clone_read_marks(parent.id, branch.last_seq, branch.id))
        .await?;
    newest_messages::refresh(tx, branch.id).await?;
    conversation::Entity::update_many()
        .col_expr(conversation::Column::IsHidden, Expr::value(false))
        .col_expr(conversation::Column::TextBytes, Expr::value(text_bytes))
        .filter(conversation::Column::Id.eq(branch.id))
        .exec(tx)
        .await
        .map(drop)
}

/// Creates a short branch of `parent`, which is locked, in this transaction, with all visible
/// messages up to `fork`.
pub async fn create_branch(
    tx: &impl ConnectionTrait,
    parent: &conversation::Model,
    fork: &message::Model,
    new: NewBranch,
) -> Result<conversation::Model, DbErr> {
    let branch = insert_branch(tx, parent, fork, new).await?;
    let part = (0, fork.seq);
    tx.execute(&clone_messages(parent.id, branch.id, part))
        .await?;
    tx.execute(&clone_swipes(branch.id, part)).await?;
    clone_annotations(tx, branch.id, part).await?;
    tx.execute(&clone_read_marks(parent.id, fork.seq, branch.id))
        .await?;
    newest_messages::refresh(tx, branch.id).await?;
    Ok(branch)
}

/// Returns the number of messages up to `up_to`, hidden ones included, and the size in bytes of all
/// texts of the visible ones.
pub async fn measure(
    db: &impl ConnectionTrait,
    id: ConversationId,
    up_to: i64,
) -> Result<(i64, i64), DbErr> {
    let sql = "SELECT COUNT(*) AS n, CAST(COALESCE(SUM(CASE WHEN m.visibility = 'hidden' THEN 0 \
        ELSE octet_length(m.content) + COALESCE((SELECT SUM(octet_length(t.content)) \
        FROM message_swipes t WHERE t.message_id = m.id), 0) END), 0) AS bigint) AS bytes \
        FROM messages m WHERE m.conversation_id = $1 AND m.seq <= $2";
    let values = [id.0.into(), up_to.into()];
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    match db.query_one_raw(statement).await? {
        Some(row) => Ok((row.try_get("", "n")?, row.try_get("", "bytes")?)),
        None => Ok((0, 0)),
    }
}

async fn sum_text_bytes(
    db: &impl ConnectionTrait,
    id: ConversationId,
    (after, to): (i64, i64),
) -> Result<i64, DbErr> {
    let sql = "SELECT CAST(COALESCE(SUM(octet_length(m.content) \
        + COALESCE((SELECT SUM(octet_length(t.content)) \
        FROM message_swipes t WHERE t.message_id = m.id), 0)), 0) AS bigint) AS bytes \
        FROM messages m WHERE m.conversation_id = $1 AND m.seq > $2 AND m.seq <= $3";
    let values = [id.0.into(), after.into(), to.into()];
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    match db.query_one_raw(statement).await? {
        Some(row) => row.try_get("", "bytes"),
        None => Ok(0),
    }
}

/// Clones the visible messages of a range of the parent, in order.
fn clone_messages(
    parent: ConversationId,
    branch: ConversationId,
    (after, to): (i64, i64),
) -> InsertStatement {
    use message::Column;
    let mut clones = Query::select();
    clones
        .from(message::Entity)
        .and_where(Column::ConversationId.eq(parent))
        .and_where(Column::Seq.gt(after))
        .and_where(Column::Seq.lte(to))
        .and_where(Column::Visibility.ne(message::Visibility::Hidden))
        .order_by(Column::Seq, Order::Asc);
    let columns = Column::iter().filter(|it| !matches!(it, Column::Id));
    insert_select(message::Entity, columns, clones, |column| match column {
        Column::ConversationId => Expr::value(branch.0),
        Column::OriginMessageId => Expr::col(Column::Id),
        // Belongs to the original post; in the branch the client id is free.
        Column::ClientId => Expr::value(None::<String>),
        Column::Rev => Expr::value(FIRST_REV),
        kept => Expr::col(kept),
    })
}

/// Clones the swipes of a range of cloned messages.
fn clone_swipes(branch: ConversationId, (after, to): (i64, i64)) -> InsertStatement {
    use swipe::Column;
    let origin = (message::Entity, message::Column::OriginMessageId);
    let mut clones = Query::select();
    clones
        .from(message::Entity)
        .inner_join(
            swipe::Entity,
            Expr::col((swipe::Entity, Column::MessageId)).equals(origin),
        )
        .and_where(message::Column::ConversationId.eq(branch))
        .and_where(message::Column::Seq.gt(after))
        .and_where(message::Column::Seq.lte(to));
    let columns = Column::iter().filter(|it| !matches!(it, Column::Id));
    insert_select(swipe::Entity, columns, clones, |column| match column {
        Column::MessageId => Expr::col((message::Entity, message::Column::Id)),
        kept => Expr::col((swipe::Entity, kept)),
    })
}

/// Clones the reactions and the pictures of a range of cloned messages, and lets their replies answer the
/// clones. The bytes of the pictures are not stored again.
async fn clone_annotations(
    tx: &impl ConnectionTrait,
    branch: ConversationId,
    part: (i64, i64),
) -> Result<(), DbErr> {
    tx.execute(&clone_reactions(branch, part)).await?;
    tx.execute(&clone_attachments(branch, part)).await?;
    // A clone keeps its position. A message that was hidden has no clone.
    let sql = "UPDATE messages SET reply_to_message_id = (SELECT c.id FROM messages t \
        JOIN messages c ON c.conversation_id = $1 AND c.seq = t.seq \
        WHERE t.id = messages.reply_to_message_id) \
        WHERE conversation_id = $1 AND seq > $2 AND seq <= $3 AND reply_to_message_id IS NOT NULL";
    let values = [branch.0.into(), part.0.into(), part.1.into()];
    let statement = Statement::from_sql_and_values(tx.get_database_backend(), sql, values);
    tx.execute_raw(statement).await.map(drop)
}

fn clone_reactions(branch: ConversationId, (after, to): (i64, i64)) -> InsertStatement {
    use reaction::Column;
    let origin = (message::Entity, message::Column::OriginMessageId);
    let mut clones = Query::select();
    clones
        .from(message::Entity)
        .inner_join(
            reaction::Entity,
            Expr::col((reaction::Entity, Column::MessageId)).equals(origin),
        )
        .and_where(message::Column::ConversationId.eq(branch))
        .and_where(message::Column::Seq.gt(after))
        .and_where(message::Column::Seq.lte(to));
    insert_select(
        reaction::Entity,
        Column::iter(),
        clones,
        |column| match column {
            Column::MessageId => Expr::col((message::Entity, message::Column::Id)),
            kept => Expr::col((reaction::Entity, kept)),
        },
    )
}

fn clone_attachments(branch: ConversationId, (after, to): (i64, i64)) -> InsertStatement {
    use attachment::Column;
    let origin = (message::Entity, message::Column::OriginMessageId);
    let mut clones = Query::select();
    clones
        .from(message::Entity)
        .inner_join(
            attachment::Entity,
            Expr::col((attachment::Entity, Column::MessageId)).equals(origin),
        )
        .and_where(message::Column::ConversationId.eq(branch))
        .and_where(message::Column::HasAttachments.eq(true))
        .and_where(message::Column::Seq.gt(after))
        .and_where(message::Column::Seq.lte(to));
    let columns = Column::iter().filter(|it| !matches!(it, Column::Id));
    insert_select(attachment::Entity, columns, clones, |column| match column {
        Column::MessageId => Expr::col((message::Entity, message::Column::Id)),
        kept => Expr::col((attachment::Entity, kept)),
    })
}

/// Copies the read marks of the parent, limited to the fork.
fn clone_read_marks(
    parent: ConversationId,
    fork_seq: i64,
    branch: ConversationId,
) -> InsertStatement {
    use read_mark::Column;
    let mut marks = Query::select();
    marks
        .from(read_mark::Entity)
        .and_where(Column::ConversationId.eq(parent));
    insert_select(
        read_mark::Entity,
        Column::iter(),
        marks,
        |column| match column {
            Column::ConversationId => Expr::value(branch.0),
            Column::LastReadSeq => {
                let read = Expr::col(Column::LastReadSeq);
                Expr::case(read.clone().gt(fork_seq), fork_seq)
                    .finally(read)
                    .into()
            }
            kept => Expr::col(kept),
        },
    )
}

/// Builds an `INSERT … SELECT` from columns and their expressions.
fn insert_select<C: IntoIden + Copy>(
    table: impl sea_orm::sea_query::IntoTableRef,
    columns: impl Iterator<Item = C>,
    mut rows: SelectStatement,
    value: impl Fn(C) -> SimpleExpr,
) -> InsertStatement {
    let columns: Vec<C> = columns.collect();
    rows.exprs(columns.iter().map(|it| value(*it)));
    let mut insert = Query::insert();
    insert.into_table(table).columns(columns);
    insert
        .select_from(rows)
        .expect("columns and values come from the same list");
    insert
}

/// Returns the conversation and, if it is a branch, its ancestors, each with the newest `seq` that
/// belongs to the conversation: the largest number for itself, the fork for an ancestor. Executes two
/// queries for each ancestor.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load_lineage(
    db: &impl ConnectionTrait,
    row: &conversation::Model,
) -> Result<BTreeMap<ConversationId, i64>, DbErr> {
    let mut lineage = BTreeMap::from([(row.id, i64::MAX)]);
    let is_branch = row.kind == conversation::ConversationKind::Branch;
    let mut next = row.forked_from_message_id.filter(|_| is_branch);
    while let Some(fork) = next {
        let Some(fork) = message::find(db, fork).await? else {
            break;
        };
        // A damaged row could be its own ancestor.
        if lineage.insert(fork.conversation_id, fork.seq).is_some() {
            break;
        }
        let parent = conversation::find_visible(db, fork.conversation_id).await?;
        next = parent.and_then(|it| it.forked_from_message_id);
    }
    Ok(lineage)
}
