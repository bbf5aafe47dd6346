//! What a socket has the main runtime find out: connections to the database belong there, and a
//! socket lives on a web worker.

use crate::app::App;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::http::holder::Caller;
use crate::http::holder::as_of_now;
use crate::http::holder::is_gone;
use crate::http::holder::on_main;
use crate::http::seat;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::RunId;
use crate::ids::SpaceId;
use crate::spaces::permissions::Act;
use actix_web::web::Data;

/// What a subscription begins with.
#[derive(Debug)]
pub struct Opened {
    pub space: SpaceId,
    /// As whom the person is there; an admin needs no seat to listen.
    pub seat: Option<MembershipId>,
    pub rev: i64,
    /// The run that was running, and who speaks in it.
    pub running: Option<(RunId, MembershipId)>,
    /// The snapshot, encoded.
    pub snapshot: String,
}

/// Reads what a subscription begins with.
///
/// # Errors
/// 404 when there is no such conversation for this person.
pub async fn open(
    app: Data<App>,
    caller: Caller,
    id: ConversationId,
    after_rev: Option<i64>,
) -> ApiResult<Opened> {
    on_main(app, move |app| async move {
        let caller = as_of_now(&app, caller).await?;
        let at = seat::in_conversation(&app, &caller, id).await?;
        let snapshot = app.engine.snapshot(id, after_rev).await?;
        let snapshot = snapshot.ok_or_else(ApiError::not_found)?;
        let running = snapshot.running_run.as_ref();
        if let Some(run) = running {
            app.engine.fetch_text(id, run.id).await;
        }
        Ok(Opened {
            space: at.space.id,
            seat: at.seat.as_ref().map(|it| it.id),
            rev: snapshot.rev,
            running: running.map(|it| (it.id, it.speaker_space_membership_id)),
            snapshot: serde_json::to_string(&snapshot).map_err(ApiError::internal)?,
        })
    })
    .await
}

/// Asks whether a person may hear a space.
///
/// # Errors
/// 404 when there is no such space for this person.
pub async fn look_into(app: Data<App>, caller: Caller, id: SpaceId) -> ApiResult<()> {
    on_main(app, move |app| async move {
        let caller = as_of_now(&app, caller).await?;
        seat::in_space(&app, &caller, id).await.map(|_| ())
    })
    .await
}

/// Asks whether a person may type in a conversation, and in which seat.
///
/// # Errors
/// 404 when there is no such conversation for this person; 403 when they may only read.
pub async fn may_type(
    app: Data<App>,
    caller: Caller,
    id: ConversationId,
) -> ApiResult<MembershipId> {
    on_main(app, move |app| async move {
        let caller = as_of_now(&app, caller).await?;
        let at = seat::in_conversation(&app, &caller, id).await?;
        at.may_write(Act::Post)?;
        at.own_seat().map(|it| it.id)
    })
    .await
}

/// What a person may hear no more.
#[derive(Debug, Default)]
pub struct Revoked {
    pub conversations: Vec<ConversationId>,
    pub spaces: Vec<SpaceId>,
}

/// Looks again at what is subscribed.
///
/// # Errors
/// When the database gives no answer: then nothing may be taken for granted.
pub async fn review(
    app: Data<App>,
    caller: Caller,
    conversations: Vec<ConversationId>,
    spaces: Vec<SpaceId>,
) -> ApiResult<Revoked> {
    on_main(app, move |app| async move {
        let caller = as_of_now(&app, caller).await;
        let caller = match caller {
            Err(error) if is_gone(&error) => {
                return Ok(Revoked {
                    conversations,
                    spaces,
                });
            }
            other => other?,
        };
        let mut revoked = Revoked::default();
        for id in conversations {
            match seat::in_conversation(&app, &caller, id).await {
                Err(error) if is_gone(&error) => revoked.conversations.push(id),
                other => drop(other?),
            }
        }
        for id in spaces {
            match seat::in_space(&app, &caller, id).await {
                Err(error) if is_gone(&error) => revoked.spaces.push(id),
                other => drop(other?),
            }
        }
        Ok(revoked)
    })
    .await
}
