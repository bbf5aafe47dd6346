//! Identifies the caller of an open socket, checks whether they still have access, and decides
//! which control events close the socket.
//!
//! Connections to the database belong to the main runtime, and a socket runs on a web worker: its
//! queries go through [`run_on_main`].

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use base::ids::UserId;
use realtime::envelope::SocketControl;

use crate::accounts::credential::Credential;
use crate::accounts::{api_key, session, user};
use crate::app::App;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::ws::connection::DisconnectReason;

/// Longer queries count as failed.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The user of a socket, and the credential that opened it. Rights are not cached: they are
/// queried.
#[derive(Clone, Copy, Debug)]
pub struct SocketCaller {
    pub user: UserId,
    pub credential: Credential,
}

/// Runs `work` on the main runtime.
///
/// # Errors
/// Returns the error of `work`; 503 if it does not finish in time.
pub async fn run_on_main<T, F>(
    app: Data<App>,
    work: impl FnOnce(Arc<App>) -> F + Send + 'static,
) -> ApiResult<T>
where
    T: Send + 'static,
    F: Future<Output = ApiResult<T>> + Send,
{
    let own = app.clone().into_inner();
    let task = app.shutdown.spawn(async move { work(own).await });
    match tokio::time::timeout(TIMEOUT, task).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => Err(ApiError::internal(error)),
        Err(_) => Err(ApiError::new(
            503,
            "internal",
            "The server is busy. Try again in a moment.",
        )),
    }
}

/// Loads the caller again: their role may have changed since the socket opened.
///
/// # Errors
/// Returns 404 if they have lost access.
pub async fn refresh(app: &App, caller: SocketCaller) -> ApiResult<CurrentUser> {
    let user = user::find_active(app.db.reader(), caller.user).await?;
    Ok(CurrentUser {
        user: user.ok_or_else(ApiError::not_found)?,
        credential: caller.credential,
        key_prefix: None,
    })
}

/// Returns whether an error means that the caller sees nothing.
pub fn is_not_found(error: &ApiError) -> bool {
    error.status == StatusCode::NOT_FOUND
}

/// Returns whether the caller's credential is still valid.
///
/// # Errors
/// Returns an error when the database does not answer.
pub async fn has_access(app: Data<App>, caller: SocketCaller) -> ApiResult<bool> {
    run_on_main(app, move |app| async move {
        let db = app.db.reader();
        let is_valid = match caller.credential {
            Credential::Session(id) => session::exists(db, id).await?,
            Credential::ApiKey(id) => api_key::is_active(db, id).await?,
        };
        match refresh(&app, caller).await {
            Err(error) if is_not_found(&error) => Ok(false),
            other => other.map(|_| is_valid),
        }
    })
    .await
}

/// Returns why a control event closes the caller's socket; `None` if it does not.
pub fn disconnect_reason(caller: SocketCaller, control: SocketControl) -> Option<DisconnectReason> {
    let (is_affected, description) = match (control, caller.credential) {
        (SocketControl::SessionEnded(id), Credential::Session(own)) => (id == own, "session ended"),
        (SocketControl::KeyRevoked(id), Credential::ApiKey(own)) => (id == own, "key revoked"),
        (SocketControl::Disabled, _) => (true, "account disabled"),
        _ => return None,
    };
    is_affected.then_some(DisconnectReason::ClosedByServer(4001, description))
}
