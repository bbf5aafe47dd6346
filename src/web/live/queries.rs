//! Runs the database queries of a live socket (open a subscription, check access) on the main
//! runtime, which owns the database connections; the socket itself runs on a web worker.

use actix_web::web::Data;
use base::ids::{ConversationId, MembershipId, RunId, SpaceId};

use crate::app::App;
use crate::runs::store::run_view::RunDocument;
use crate::spaces::permissions::Action;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::space_access;
use crate::web::ws::socket_caller::{SocketCaller, is_not_found, refresh, run_on_main};

/// The start of a subscription.
#[derive(Debug)]
pub struct OpenedSubscription {
    pub space: SpaceId,
    /// The user's membership; an admin needs none to subscribe.
    pub membership: Option<MembershipId>,
    pub rev: i64,
    /// The running run, whether the user sees it or not.
    pub running: Option<RunId>,
    /// The running run and its speaker, if the user sees it.
    pub stream: Option<(RunId, MembershipId)>,
    /// The existing text that the running run continues.
    pub base_text: Option<String>,
    /// The snapshot, encoded.
    pub snapshot: String,
}

/// Loads the start of a subscription.
///
/// # Errors
/// Returns 404 if the conversation does not exist for this user.
pub async fn open(
    app: Data<App>,
    caller: SocketCaller,
    id: ConversationId,
    after_rev: Option<i64>,
) -> ApiResult<OpenedSubscription> {
    run_on_main(app, move |app| async move {
        let caller = refresh(&app, caller).await?;
        let at = space_access::load_conversation_access(&app, &caller, id).await?;
        let snapshot = app.engine.snapshot(id, at.viewer(), after_rev).await?;
        let snapshot = snapshot.ok_or_else(ApiError::not_found)?;
        let running = snapshot.running_run.as_ref().and_then(RunDocument::whole);
        if let Some(run) = running {
            app.engine.fetch_text(id, run.id).await;
        }
        Ok(OpenedSubscription {
            space: at.space.id,
            membership: at.membership.as_ref().map(|it| it.id),
            rev: snapshot.rev,
            running: snapshot.running,
            stream: running.map(|it| (it.id, it.speaker_space_membership_id)),
            base_text: snapshot.base_text.clone(),
            snapshot: serde_json::to_string(&snapshot).map_err(ApiError::internal)?,
        })
    })
    .await
}

/// Checks that a user may subscribe to a space, and returns their membership; an admin needs none.
///
/// # Errors
/// Returns 404 if the space does not exist for this user.
pub async fn check_space_access(
    app: Data<App>,
    caller: SocketCaller,
    id: SpaceId,
) -> ApiResult<Option<MembershipId>> {
    run_on_main(app, move |app| async move {
        let caller = refresh(&app, caller).await?;
        let at = space_access::load_space_access(&app, &caller, id).await?;
        Ok(at.membership.map(|it| it.id))
    })
    .await
}

/// Checks that a user may type in a conversation, and returns their membership.
///
/// # Errors
/// Returns 404 if the conversation does not exist for this user; 403 if they may only read.
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

/// Subscriptions to which a user has lost the right.
#[derive(Debug, Default)]
pub struct RevokedAccess {
    pub conversations: Vec<ConversationId>,
    pub spaces: Vec<SpaceId>,
}

/// Checks all subscriptions again.
///
/// # Errors
/// Returns an error when the database does not answer: then no right may be assumed.
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
