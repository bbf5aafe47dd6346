//! Answers a WebSocket upgrade of an authenticated caller, within the limit of open sockets, and
//! runs the session of the new socket in a task.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse, rt};

use crate::app::App;
use crate::web::extract::client_ip;
use crate::web::ws::connection;
use crate::web::ws::connection::WsReceiver;
use crate::web::ws::socket_caller::SocketCaller;
use crate::web::ws::socket_link::SocketLink;

/// Seconds after which a caller with too many sockets may try again.
pub const RETRY_AFTER_LIMIT: u64 = 10;

/// Seconds after which a client may try again when the server shuts down.
pub const RETRY_AFTER_DRAIN: u64 = 1;

/// Why no socket was opened.
#[derive(Debug)]
pub enum UpgradeError {
    /// The server is shutting down.
    Draining,
    /// The request is not a valid upgrade.
    NotAnUpgrade(actix_web::Error),
    /// The user or the address has too many open sockets.
    TooManySockets,
}

/// Opens a socket whose frames have at most `max_frame_bytes`, and runs `session` on it in a task
/// of this worker.
///
/// # Errors
/// Returns why no socket was opened.
pub async fn open<F>(
    app: &Data<App>,
    caller: SocketCaller,
    (request, payload): (&HttpRequest, Payload),
    max_frame_bytes: usize,
    session: impl FnOnce(WsReceiver, SocketLink) -> F,
) -> Result<HttpResponse, UpgradeError>
where
    F: Future<Output = ()> + 'static,
{
    if app.shutdown.draining.is_cancelled() {
        return Err(UpgradeError::Draining);
    }
    let timeouts = app.socket_timeouts;
    let opened = connection::open(request, payload, max_frame_bytes, timeouts.write_timeout);
    let (answer, receiver, sender) = opened.await.map_err(UpgradeError::NotAnUpgrade)?;
    // After the upgrade: a request that is not a valid upgrade uses no permit.
    let address = client_ip::client_ip(request);
    let sockets = &app.limits.sockets;
    let permit = sockets
        .acquire(caller.user, caller.credential, address)
        .await
        .ok_or(UpgradeError::TooManySockets)?;
    // Boxed, because a task that awaits a captured future stores it twice.
    let session = Box::pin(session(receiver, SocketLink::new(sender, timeouts)));
    rt::spawn(async move {
        session.await;
        drop(permit);
    });
    Ok(answer)
}
