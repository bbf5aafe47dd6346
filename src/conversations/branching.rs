//! Branches: a timeline that goes on from a message of another one.
//!
//! **Invariant:** what is cloned is cloned by the database, in as many statements for a hundred
//! thousand messages as for one, the same on every database. A clone keeps its place, its texts and
//! the one that is shown; it knows whom it was cloned from by `origin_message_id`.

use crate::clock::Timestamp;
use crate::conversations::conversation;
use crate::conversations::message;
use crate::conversations::newest;
use crate::conversations::read_mark;
use crate::conversations::swipe;
use crate::ids::ConversationId;
use sea_orm::ActiveModelTrait;
use sea_orm::ActiveValue::NotSet;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::IntoActiveModel;
use sea_orm::Iterable;
use sea_orm::sea_query::Expr;
use sea_orm::sea_query::ExprTrait;
use sea_orm::sea_query::InsertStatement;
use sea_orm::sea_query::IntoIden;
use sea_orm::sea_query::Order;
use sea_orm::sea_query::Query;
use sea_orm::sea_query::SelectStatement;
use sea_orm::sea_query::SimpleExpr;

/// The number of the event that a branch begins with: whoever has seen nothing has missed the clones.
const FIRST_REV: i64 = 1;

/// Makes a branch of `parent`, whose lock is held, with everything up to `fork` that is not hidden.
pub async fn branch(
    tx: &impl ConnectionTrait,
    parent: &conversation::Model,
    fork: &message::Model,
    title: String,
    now: Timestamp,
) -> Result<conversation::Model, DbErr> {
    let mut row = conversation::Model {
        kind: conversation::Kind::Branch,
        title,
        parent_conversation_id: Some(parent.id),
        forked_from_message_id: Some(fork.id),
        rev: FIRST_REV,
        last_seq: fork.seq,
        last_speaker_membership_id: None, // stored once the messages are there
        last_assistant_seq: None,
        last_user_seq: None,
        needs_step: false,
        created_at: now,
        auto_mode_turns: 0,
        archived_at: None,
        ..parent.clone() // settings and variables go along
    }
    .into_active_model()
    .reset_all();
    row.id = NotSet;
    let branch = conversation::Entity::insert(row)
        .exec_with_returning(tx)
        .await?;
    tx.execute(&messages(fork, branch.id)).await?;
    newest::store(tx, branch.id).await?;
    tx.execute(&swipes(branch.id)).await?;
    tx.execute(&read_marks(fork, branch.id)).await?;
    Ok(branch)
}

/// Clones what is shown up to the fork point, in order.
fn messages(fork: &message::Model, branch: ConversationId) -> InsertStatement {
    use message::Column;
    let mut clones = Query::select();
    clones
        .from(message::Entity)
        .and_where(Column::ConversationId.eq(fork.conversation_id))
        .and_where(Column::Seq.lte(fork.seq))
        .and_where(Column::Visibility.ne(message::Visibility::Hidden))
        .order_by(Column::Seq, Order::Asc);
    let columns = Column::iter().filter(|it| !matches!(it, Column::Id));
    insert(message::Entity, columns, clones, |column| match column {
        Column::ConversationId => Expr::value(branch.0),
        Column::OriginMessageId => Expr::col(Column::Id),
        // The post under this name was made elsewhere; here the name is free.
        Column::ClientId => Expr::value(None::<String>),
        Column::Rev => Expr::value(FIRST_REV),
        kept => Expr::col(kept),
    })
}

/// Clones the texts of what was cloned.
fn swipes(branch: ConversationId) -> InsertStatement {
    use swipe::Column;
    let origin = (message::Entity, message::Column::OriginMessageId);
    let mut clones = Query::select();
    clones
        .from(message::Entity)
        .inner_join(
            swipe::Entity,
            Expr::col((swipe::Entity, Column::MessageId)).equals(origin),
        )
        .and_where(message::Column::ConversationId.eq(branch));
    let columns = Column::iter().filter(|it| !matches!(it, Column::Id));
    insert(swipe::Entity, columns, clones, |column| match column {
        Column::MessageId => Expr::col((message::Entity, message::Column::Id)),
        kept => Expr::col((swipe::Entity, kept)),
    })
}

/// Who has read the origin has read as much of the branch.
fn read_marks(fork: &message::Model, branch: ConversationId) -> InsertStatement {
    use read_mark::Column;
    let mut marks = Query::select();
    marks
        .from(read_mark::Entity)
        .and_where(Column::ConversationId.eq(fork.conversation_id));
    insert(
        read_mark::Entity,
        Column::iter(),
        marks,
        |column| match column {
            Column::ConversationId => Expr::value(branch.0),
            Column::LastReadSeq => {
                let read = Expr::col(Column::LastReadSeq);
                Expr::case(read.clone().gt(fork.seq), fork.seq)
                    .finally(read)
                    .into()
            }
            kept => Expr::col(kept),
        },
    )
}

/// Inserts what a query finds, column by column.
fn insert<C: IntoIden + Copy>(
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
        .expect("as many values as columns: both are of one list");
    insert
}
