//! What a socket has the main runtime find out: connections to the database belong there, and a
//! socket lives on a web worker.

use crate::accounts::api_key;
use crate::accounts::session;
use crate::accounts::user;
use crate::app::App;
use crate::http::auth::Credential;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::RunId;
use crate::ids::SpaceId;
use crate::ids::UserId;
use crate::socket::access;
use crate::socket::access::Access;
use actix_web::web::Data;
use sea_orm::EntityTrait;
use std::time::Duration;

/// A database that takes longer gives no answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a subscription begins with.
#[derive(Debug)]
pub struct Opened {
    pub access: Access,
    pub rev: i64,
    /// The run that was running, and who speaks in it.
    pub running: Option<(RunId, MembershipId)>,
    /// The snapshot, encoded.
    pub snapshot: String,
}

/// Runs `work` on the main runtime.
///
/// # Errors
/// Those of the work; 503 when it takes too long.
async fn on_main<T: Send + 'static>(
    app: &App,
    work: impl Future<Output = ApiResult<T>> + Send + 'static,
) -> ApiResult<T> {
    let task = app.shutdown.spawn(work);
    match tokio::time::timeout(PATIENCE, task).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => Err(ApiError::internal(error)),
        Err(_) => Err(ApiError::new(
            503,
            "internal",
            "The server is busy. Try again in a moment.",
        )),
    }
}

/// Reads what a subscription begins with.
///
/// # Errors
/// 404 when there is no such conversation for this person.
pub async fn open(
    app: Data<App>,
    user: UserId,
    id: ConversationId,
    after_rev: Option<i64>,
) -> ApiResult<Opened> {
    let own = app.clone().into_inner();
    on_main(&app, async move {
        let access = access::to_conversation(own.db.reader(), user, id).await?;
        let access = access.ok_or_else(ApiError::not_found)?;
        let snapshot = own.engine.snapshot(id, after_rev).await?;
        let snapshot = snapshot.ok_or_else(ApiError::not_found)?;
        let running = snapshot.running_run.as_ref();
        Ok(Opened {
            access,
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
pub async fn look_into(app: Data<App>, user: UserId, id: SpaceId) -> ApiResult<()> {
    let own = app.clone().into_inner();
    on_main(&app, async move {
        let access = access::to_space(own.db.reader(), user, id).await?;
        access.map(|_| ()).ok_or_else(ApiError::not_found)
    })
    .await
}

/// Asks whether a person may type in a conversation, and in which seat.
///
/// # Errors
/// 404 when there is no such conversation for this person; 403 when they may only read.
pub async fn may_type(app: Data<App>, user: UserId, id: ConversationId) -> ApiResult<MembershipId> {
    let own = app.clone().into_inner();
    on_main(&app, async move {
        let db = own.db.reader();
        let access = access::to_conversation(db, user, id).await?;
        access::to_type(db, access.ok_or_else(ApiError::not_found)?).await
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
    user: UserId,
    conversations: Vec<ConversationId>,
    spaces: Vec<SpaceId>,
) -> ApiResult<Revoked> {
    let own = app.clone().into_inner();
    on_main(&app, async move {
        let db = own.db.reader();
        let mut revoked = Revoked::default();
        for id in conversations {
            if access::to_conversation(db, user, id).await?.is_none() {
                revoked.conversations.push(id);
            }
        }
        for id in spaces {
            if access::to_space(db, user, id).await?.is_none() {
                revoked.spaces.push(id);
            }
        }
        Ok(revoked)
    })
    .await
}

/// Whether what a caller showed still opens the door.
///
/// # Errors
/// When the database gives no answer.
pub async fn is_still_in(app: Data<App>, user: UserId, by: Credential) -> ApiResult<bool> {
    let own = app.clone().into_inner();
    on_main(&app, async move {
        let db = own.db.reader();
        let is_open = match by {
            Credential::Session(id) => session::Entity::find_by_id(id).one(db).await?.is_some(),
            Credential::ApiKey(id) => {
                let key = api_key::Entity::find_by_id(id).one(db).await?;
                key.is_some_and(|it| it.revoked_at.is_none())
            }
        };
        let user = user::Entity::find_by_id(user).one(db).await?;
        Ok(is_open && user.is_some_and(|it| it.status == user::Status::Active))
    })
    .await
}
