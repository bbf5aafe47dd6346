//! Runs the database queries of a live socket (open a subscription, check access) on the main
//! runtime, which owns the database connections; the socket itself runs on a web worker.

use std::collections::HashSet;

use actix_web::web::Data;
use base::ids::{ConversationId, MembershipId, RunId, SpaceId};

use crate::app::App;
use crate::runs::store::run_view::RunDocument;
use crate::spaces::permissions::Action;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::space_access;
use crate::web::extract::space_access::SpaceAccess;
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
        let stream = running.and_then(|it| Some((it.id, it.speaker_space_membership_id?)));
        if let Some((run, _)) = stream {
            app.engine.fetch_text(id, run).await;
        }
        Ok(OpenedSubscription {
            space: at.space.id,
            membership: at.membership.as_ref().map(|it| it.id),
            rev: snapshot.rev,
            running: snapshot.running,
            stream,
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

/// The subscriptions of a socket, each with the membership under which it was made.
#[derive(Clone, Debug, Default)]
pub struct SubscriptionList {
    pub conversations: Vec<(ConversationId, Option<MembershipId>)>,
    pub spaces: Vec<(SpaceId, Option<MembershipId>)>,
}

impl SubscriptionList {
    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.conversations.is_empty() && self.spaces.is_empty()
    }
}

/// What a user has lost since they subscribed.
#[derive(Debug, Default)]
pub struct RevokedAccess {
    /// The conversations and spaces that they may no longer see.
    pub conversations: Vec<ConversationId>,
    pub spaces: Vec<SpaceId>,
    /// The memberships that ended in spaces that they still see, as admins.
    pub memberships: HashSet<MembershipId>,
}

impl RevokedAccess {
    /// Records the membership of a subscription if it is no longer the user's. A subscription without
    /// one loses nothing.
    fn note_membership(&mut self, before: Option<MembershipId>, now: &SpaceAccess) {
        let now = now.membership.as_ref().map(|it| it.id);
        self.memberships
            .extend(before.filter(|it| now != Some(*it)));
    }
}

/// Checks all subscriptions again.
///
/// # Errors
/// Returns an error when the database does not answer: then no right may be assumed.
pub async fn review_access(
    app: Data<App>,
    caller: SocketCaller,
    subscribed: SubscriptionList,
) -> ApiResult<RevokedAccess> {
    run_on_main(app, move |app| async move {
        let caller = refresh(&app, caller).await;
        let caller = match caller {
            Err(error) if is_not_found(&error) => {
                let conversations = subscribed.conversations.into_iter();
                let spaces = subscribed.spaces.into_iter();
                return Ok(RevokedAccess {
                    conversations: conversations.map(|(id, _)| id).collect(),
                    spaces: spaces.map(|(id, _)| id).collect(),
                    memberships: HashSet::new(),
                });
            }
            other => other?,
        };
        let mut revoked = RevokedAccess::default();
        for (id, membership) in subscribed.conversations {
            match space_access::load_conversation_access(&app, &caller, id).await {
                Err(error) if is_not_found(&error) => revoked.conversations.push(id),
                other => revoked.note_membership(membership, &other?.space_access),
            }
        }
        for (id, membership) in subscribed.spaces {
            match space_access::load_space_access(&app, &caller, id).await {
                Err(error) if is_not_found(&error) => revoked.spaces.push(id),
                other => revoked.note_membership(membership, &other?),
            }
        }
        Ok(revoked)
    })
    .await
}
