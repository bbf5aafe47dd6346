//! Whoever holds a socket open: who they are, and whether they still may.
//!
//! Connections to the database belong to the main runtime, and a socket lives on a web worker: what
//! it must ask, it has [`on_main`] find out.

use crate::accounts::api_key;
use crate::accounts::session;
use crate::accounts::user;
use crate::app::App;
use crate::http::auth::Credential;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::http::wire::End;
use crate::ids::UserId;
use crate::realtime::event::Order;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use sea_orm::EntityTrait;
use std::sync::Arc;
use std::time::Duration;

/// A database that takes longer gives no answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whose socket it is, and what opened it. What they may do is not remembered: it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub user: UserId,
    pub by: Credential,
}

/// Runs `work` on the main runtime.
///
/// # Errors
/// Those of the work; 503 when it takes too long.
pub async fn on_main<T, F>(
    app: Data<App>,
    work: impl FnOnce(Arc<App>) -> F + Send + 'static,
) -> ApiResult<T>
where
    T: Send + 'static,
    F: Future<Output = ApiResult<T>> + Send,
{
    let own = app.clone().into_inner();
    let task = app.shutdown.spawn(async move { work(own).await });
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

/// The caller as the database knows them now: a role may have changed since the socket opened.
///
/// # Errors
/// 404 when they may no longer be here.
pub async fn as_of_now(app: &App, caller: Caller) -> ApiResult<CurrentUser> {
    let found = user::Entity::find_by_id(caller.user)
        .one(app.db.reader())
        .await?;
    let user = found.filter(|it| it.status == user::UserStatus::Active);
    Ok(CurrentUser {
        user: user.ok_or_else(ApiError::not_found)?,
        by: caller.by,
    })
}

/// Whether an error says that there is nothing to be seen.
pub fn is_gone(error: &ApiError) -> bool {
    error.status == StatusCode::NOT_FOUND
}

/// Whether what a caller showed still opens the door.
///
/// # Errors
/// When the database gives no answer.
pub async fn is_still_in(app: Data<App>, caller: Caller) -> ApiResult<bool> {
    on_main(app, move |app| async move {
        let db = app.db.reader();
        let is_open = match caller.by {
            Credential::Session(id) => session::Entity::find_by_id(id).one(db).await?.is_some(),
            Credential::ApiKey(id) => {
                let key = api_key::Entity::find_by_id(id).one(db).await?;
                key.is_some_and(|it| it.revoked_at.is_none())
            }
        };
        match as_of_now(&app, caller).await {
            Err(error) if is_gone(&error) => Ok(false),
            other => other.map(|_| is_open),
        }
    })
    .await
}

/// Whether an order ends a caller's socket.
pub fn ended_by(caller: Caller, order: Order) -> Option<End> {
    let (is_meant, word) = match (order, caller.by) {
        (Order::SessionEnded(id), Credential::Session(own)) => (id == own, "session ended"),
        (Order::KeyRevoked(id), Credential::ApiKey(own)) => (id == own, "key revoked"),
        (Order::Disabled, _) => (true, "account disabled"),
        _ => return None,
    };
    is_meant.then_some(End::Ours(4001, word))
}
