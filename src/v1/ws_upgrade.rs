//! `GET /v1/responses` with an upgrade: opens a WebSocket for consecutive responses.

use actix_web::http::header::UPGRADE;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};

use crate::app::App;
use crate::http::{client_ip, connection, socket_caller};
use crate::v1::api_key_auth::ApiKeyCaller;
use crate::v1::body::MAX_BODY_BYTES;
use crate::v1::error::{V1Error, V1Result};
use crate::v1::{responses, ws_session};

/// Opens a socket.
///
/// # Errors
/// Returns 405 without an upgrade, 400 for an invalid upgrade, 429 when the caller has too many
/// sockets, and 503 during shutdown.
pub async fn connect(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    if !http.headers().contains_key(UPGRADE) {
        return Err(responses::method_not_allowed());
    }
    if app.shutdown.draining.is_cancelled() {
        return Err(V1Error {
            retry_after: Some(1),
            ..V1Error::new(503, "overloaded", "The server is shutting down.")
        });
    }
    let within = app.socket_timeouts.write_timeout;
    let opened = connection::open(&http, payload, MAX_BODY_BYTES, within).await;
    let (answer, inlet, outlet) = opened.map_err(|_| {
        let message = "This is not a WebSocket upgrade request.";
        V1Error::new(400, "invalid_value", message)
    })?;
    let address = client_ip::client_ip(&http);
    let permit = app
        .limits
        .sockets
        .acquire(caller.id(), caller.credential, address)
        .await;
    let Some(place) = permit else {
        return Err(V1Error {
            retry_after: Some(10),
            ..V1Error::new(429, "rate_limited", "You have too many open sockets.")
        });
    };
    let caller = socket_caller::SocketCaller {
        user: caller.id(),
        credential: caller.credential,
    };
    actix_web::rt::spawn(async move {
        ws_session::serve(app, caller, inlet, outlet).await;
        drop(place);
    });
    Ok(answer)
}
