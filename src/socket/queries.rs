//! What a socket has the main runtime find out: connections to the database belong there, and a
//! socket lives on a web worker.

use actix_web::web::Data;

use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::socket_caller::{SocketCaller, is_not_found, refresh, run_on_main};
use crate::http::space_access;
use crate::ids::{ConversationId, MembershipId, RunId, SpaceId};
use crate::spaces::permissions::Action;

/// What a subscription begins with.
#[derive(Debug)]
pub struct OpenedSubscription {
    pub space: SpaceId,
    /// As whom the person is there; an admin needs no seat to listen.
    pub membership: Option<MembershipId>,
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
    caller: SocketCaller,
    id: ConversationId,
    after_rev: Option<i64>,
) -> ApiResult<OpenedSubscription> {
    run_on_main(app, move |app| async move {
        let caller = refresh(&app, caller).await?;
        let at = space_access::load_conversation_access(&app, &caller, id).await?;
        let snapshot = app.engine.snapshot(id, after_rev).await?;
        let snapshot = snapshot.ok_or_else(ApiError::not_found)?;
        let running = snapshot.running_run.as_ref();
        if let Some(run) = running {
            app.engine.fetch_text(id, run.id).await;
        }
        Ok(OpenedSubscription {
            space: at.space.id,
            membership: at.membership.as_ref().map(|it| it.id),
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
pub async fn check_space_access(
    app: Data<App>,
    caller: SocketCaller,
    id: SpaceId,
) -> ApiResult<()> {
    run_on_main(app, move |app| async move {
        let caller = refresh(&app, caller).await?;
        space_access::load_space_access(&app, &caller, id)
            .await
            .map(|_| ())
    })
    .await
}

/// Asks whether a person may type in a conversation, and in which seat.
///
/// # Errors
/// 404 when there is no such conversation for this person; 403 when they may only read.
pub async fn require_typing(
    app: Data<App>,
    caller: SocketCaller,
    id: ConversationId,
) -> ApiResult<MembershipId> {
    run_on_main(app, move |app| async move {
        let caller = refresh(&app, caller).await?;
        let at = space_access::load_conversation_access(&app, &caller, id).await?;
        at.require_write(Action::Post)?;
        at.own_membership().map(|it| it.id)
    })
    .await
}

/// What a person may hear no more.
#[derive(Debug, Default)]
pub struct RevokedAccess {
    pub conversations: Vec<ConversationId>,
    pub spaces: Vec<SpaceId>,
}

/// Looks again at what is subscribed.
///
/// # Errors
/// When the database gives no answer: then nothing may be taken for granted.
pub async fn review_access(
    app: Data<App>,
    caller: SocketCaller,
    conversations: Vec<ConversationId>,
    spaces: Vec<SpaceId>,
) -> ApiResult<RevokedAccess> {
    run_on_main(app, move |app| async move {
        let caller = refresh(&app, caller).await;
        let caller = match caller {
            Err(error) if is_not_found(&error) => {
                return Ok(RevokedAccess {
                    conversations,
                    spaces,
                });
            }
            other => other?,
        };
        let mut revoked = RevokedAccess::default();
        for id in conversations {
            match space_access::load_conversation_access(&app, &caller, id).await {
                Err(error) if is_not_found(&error) => revoked.conversations.push(id),
                other => drop(other?),
            }
        }
        for id in spaces {
            match space_access::load_space_access(&app, &caller, id).await {
                Err(error) if is_not_found(&error) => revoked.spaces.push(id),
                other => drop(other?),
            }
        }
        Ok(revoked)
    })
    .await
}
