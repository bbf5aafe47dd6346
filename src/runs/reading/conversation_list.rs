//! Loads a page of the conversations of a space, each with its state, its active runs and how far
//! the user has read.

use base::ids::{ConversationId, SpaceId, UserId};
use sea_orm::{ConnectionTrait, DbErr, EntityTrait};

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::{conversation, read_mark};
use crate::db::connect::Db;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::rounds::round;
use crate::runs::reading::views;
use crate::runs::reading::views::{ConversationView, RuntimeView};
use crate::runs::store::{failed_run, run};
use crate::spaces::space;

/// Returns a page of the conversations of a space, each with the `seq` up to which the user has
/// read; all of one state of the database. Whispers to others leave nothing unread.
///
/// # Errors
/// Returns `RecordNotFound` when the space does not exist, or the database's error when it fails.
pub async fn load_page(
    db: &Db,
    (user, viewer): (UserId, Viewer),
    space: SpaceId,
    page: PageQuery,
) -> Result<PageOf<(ConversationView, i64)>, DbErr> {
    db.read(move |tx| {
        Box::pin(async move {
            let found = conversation::list_for_space(tx, space, page).await?;
            let ids: Vec<ConversationId> = found.data.iter().map(|it| it.id).collect();
            let marks = read_mark::list_for_user(tx, user, &ids).await?;
            let mark = |id: &ConversationId| marks.get(id).copied().unwrap_or_default();
            let unread = found.data.iter().filter(|it| it.last_seq > mark(&it.id));
            let unread: Vec<_> = unread.map(|it| (it.id, mark(&it.id))).collect();
            let all_read = read_mark::list_all_read(tx, viewer, &unread).await?;
            let views = load_views(tx, (space, viewer), &found.data).await?;
            let with_mark = |view: ConversationView| {
                let last_read_seq = match all_read.contains(&view.id) {
                    true => view.last_seq,
                    false => mark(&view.id),
                };
                (view, last_read_seq)
            };
            Ok(PageOf {
                data: views.into_iter().map(with_mark).collect(),
                has_more: found.has_more,
                cursor: found.cursor,
            })
        })
    })
    .await
}

/// Returns the documents of some conversations of one space, in their order. Consistent only if the
/// rows were read in the same transaction.
async fn load_views(
    tx: &impl ConnectionTrait,
    (space, viewer): (SpaceId, Viewer),
    rows: &[conversation::Model],
) -> Result<Vec<ConversationView>, DbErr> {
    let space = space::Entity::find_by_id(space).one(tx).await?;
    let space = space.ok_or_else(|| DbErr::RecordNotFound("a space".to_owned()))?;
    let ids: Vec<ConversationId> = rows.iter().map(|it| it.id).collect();
    let (queued, running): (Vec<_>, Vec<_>) = run::list_active(tx, &ids)
        .await?
        .into_iter()
        .partition(|it| it.status == run::RunStatus::Queued);
    let failed = failed_run::list_newest_failed(tx, &ids).await?;
    let rounds = round::list_active(tx, &ids).await?;
    let run_in = |runs: &[run::Model], id| {
        let run = runs.iter().find(|it| it.conversation_id == id);
        run.cloned()
    };
    let round_in = |id| {
        let round = rounds.iter().find(|it| it.conversation_id == id);
        round.cloned()
    };
    let view = |row: &conversation::Model| {
        let runtime = RuntimeView {
            round: round_in(row.id),
            queued: run_in(&queued, row.id),
            running: run_in(&running, row.id),
            failed: run_in(&failed, row.id),
        };
        views::conversation_view(row, &space, &runtime, viewer)
    };
    let mut views: Vec<_> = rows.iter().map(view).collect();
    views::show_forks(tx, rows.iter().zip(&mut views), viewer).await?;
    Ok(views)
}
