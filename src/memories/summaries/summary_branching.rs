//! Copies the summaries of a conversation to a new branch: those that cover only messages of the branch.
//!
//! **Invariant:** a branch has no text of a deleted message, and no text and no fact that was written for
//! messages after its fork. The number of statements does not depend on the number of summaries.

use base::clock::Timestamp;
use base::ids::{ConversationId, SummaryId};
use sea_orm::sea_query::{Expr, ExprTrait, InsertStatement, Order, Query, SimpleExpr};
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, DbErr, Iterable};

use crate::conversations::conversation;
use crate::memories::summaries::summary;
use crate::memories::summaries::summary::{Column, Entity, Model, SummaryLevel, SummaryStatus};
use crate::memories::summaries::summary_plan::{SummaryState, next_step};
use crate::memories::summaries::summary_store::set_summary_goal;
use crate::memories::tasks::summarizing_task;

/// Copies the summaries of `parent`, which is locked, that end at or before the last message of `branch`: the
/// parts in use, and the newest version of the running summary. Then requests the summaries that are missing,
/// for example a running summary if that of the parent covers more messages. Executes no statement if the
/// parent has no summaries.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn copy_summaries(
    tx: &impl ConnectionTrait,
    parent: &conversation::Model,
    branch: &conversation::Model,
    now: Timestamp,
) -> Result<(), DbErr> {
    if parent.summary_goal_seq < parent.summary_from_seq {
        return Ok(());
    }
    let versions = summary::list_running(tx, parent.id).await?;
    let running = choose_running(&versions, branch.last_seq);
    tx.execute(&clone_summaries(parent.id, branch, running))
        .await?;
    let parts = summary::list_parts(tx, branch.id).await?;
    let running = summary::find_running(tx, branch.id).await?;
    let Some(goal_seq) = parts.iter().chain(&running).map(|it| it.to_seq).max() else {
        return Ok(());
    };
    set_summary_goal(tx, branch.id, goal_seq).await?;
    let missing = next_step(SummaryState {
        from_seq: branch.summary_from_seq,
        goal_seq,
        parts: &parts,
        running: running.as_ref(),
    });
    match missing {
        Some(_) => summarizing_task::request(tx, branch, now).await,
        None => Ok(()),
    }
}

/// The version of the running summary to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CopiedVersion {
    id: SummaryId,
    /// Its status in the branch, if it is superseded in the parent.
    status: SummaryStatus,
}

/// Returns the newest version that ends at or before `fork_seq`, with its own pinned facts. `versions` are
/// the newest first.
fn choose_running(versions: &[Model], fork_seq: i64) -> Option<CopiedVersion> {
    let in_use = versions.first()?;
    let ends_before = |it: &&Model| it.to_seq <= fork_seq;
    let found = summary::continued_versions(versions)
        .iter()
        .find(ends_before)?;
    Some(CopiedVersion {
        id: found.id,
        // A change of a message marks only the version in use, but the older version may cover the message,
        // too.
        status: in_use.status,
    })
}

/// Builds the statement that clones the summaries in the order in which they were written. This order decides
/// whether a part is newer than the running summary.
fn clone_summaries(
    parent: ConversationId,
    branch: &conversation::Model,
    running: Option<CopiedVersion>,
) -> InsertStatement {
    let is_part = Condition::all()
        .add(Column::Level.eq(SummaryLevel::Part))
        .add(Column::Status.ne(SummaryStatus::Superseded))
        .add(Column::IsUsable.eq(true))
        .add(Column::ToSeq.lte(branch.last_seq));
    let is_running = running.map(|it| Column::Id.eq(it.id));
    let copied = Condition::any().add(is_part).add_option(is_running);
    let columns = || Column::iter().filter(|it| !matches!(it, Column::Id));
    let value = |column: Column| -> SimpleExpr {
        let kept = Expr::col(column);
        match (column, running) {
            (Column::ConversationId, _) => Expr::value(branch.id.0),
            // Of a version that covers a deleted message, only the facts are copied.
            (Column::Content, _) => {
                let is_usable = Expr::col(Column::IsUsable);
                Expr::case(is_usable, kept).finally("").into()
            }
            (Column::Status, Some(running)) => {
                let is_old = Expr::col(Column::Status).eq(SummaryStatus::Superseded);
                Expr::case(is_old, running.status).finally(kept).into()
            }
            _ => kept,
        }
    };
    let clones = Query::select()
        .exprs(columns().map(value))
        .from(Entity)
        .and_where(Column::ConversationId.eq(parent))
        .cond_where(copied)
        .order_by(Column::Id, Order::Asc)
        .to_owned();
    let mut insert = Query::insert();
    insert.into_table(Entity).columns(columns());
    insert
        .select_from(clones)
        .expect("columns and values come from the same list");
    insert
}

#[cfg(test)]
mod tests {
    use base::ids::SummaryId;

    use super::{CopiedVersion, choose_running};
    use crate::memories::summaries::summary::tests::running_version as version;
    use crate::memories::summaries::summary::{Model, SummaryStatus};

    fn chosen(versions: &[Model], fork_seq: i64) -> Option<i64> {
        choose_running(versions, fork_seq).map(|it| it.id.0)
    }

    #[test]
    fn the_newest_version_that_ends_at_or_before_the_fork_is_copied() {
        let versions = [version(3, 90), version(2, 60), version(1, 30)];

        assert_eq!(chosen(&versions, 95), Some(3));
        assert_eq!(chosen(&versions, 90), Some(3));
        assert_eq!(chosen(&versions, 89), Some(2));
        assert_eq!(chosen(&versions, 30), Some(1));
        assert_eq!(chosen(&versions, 29), None);
        assert_eq!(chosen(&[], 29), None);
    }

    #[test]
    fn a_text_that_was_corrected_since_is_not_copied() {
        // The second one replaces the third one, which has the text of an edited message.
        let versions = [
            version(4, 90),
            version(3, 60),
            version(2, 60),
            version(1, 30),
        ];

        assert_eq!(chosen(&versions, 70), Some(3));
        assert_eq!(chosen(&versions, 40), None);
    }

    #[test]
    fn an_older_version_is_stale_if_the_one_in_use_is() {
        let mut versions = [version(2, 60), version(1, 30)];
        versions[0].status = SummaryStatus::Stale;

        let expected = CopiedVersion {
            id: SummaryId(1),
            status: SummaryStatus::Stale,
        };
        assert_eq!(choose_running(&versions, 40), Some(expected));
    }
}
