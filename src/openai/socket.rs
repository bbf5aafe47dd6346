//! `GET /v1/responses` with an upgrade: one socket, one turn after the other.

use crate::accounts::socket_limit::CredentialId;
use crate::app::App;
use crate::http::authentication::Credential;
use crate::http::client_ip;
use crate::http::connection;
use crate::http::socket_caller;
use crate::openai::body::MAX_BODY_BYTES;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::key::Caller;
use crate::openai::responses;
use crate::openai::socket_session;
use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::http::header::UPGRADE;
use actix_web::web::Data;
use actix_web::web::Payload;

/// Opens a socket.
///
/// # Errors
/// 405 without an upgrade; 400 for one that is none; 429 for one too many; 503 while the server
/// closes.
pub async fn connect(
    app: Data<App>,
    Caller(caller): Caller,
    http: HttpRequest,
    payload: Payload,
) -> Answer<HttpResponse> {
    if !http.headers().contains_key(UPGRADE) {
        return Err(responses::wrong_method());
    }
    if app.shutdown.draining.is_cancelled() {
        return Err(Problem {
            retry_after: Some(1),
            ..Problem::new(503, "overloaded", "The server is closing.")
        });
    }
    let within = app.socket_timeouts.write_timeout;
    let opened = connection::open(&http, payload, MAX_BODY_BYTES, within).await;
    let (answer, inlet, outlet) = opened.map_err(|_| {
        let message = "This is no WebSocket upgrade.";
        Problem::new(400, "invalid_value", message)
    })?;
    let shown = match caller.credential {
        Credential::Session(id) => CredentialId::Session(id),
        Credential::ApiKey(id) => CredentialId::Key(id),
    };
    let address = client_ip::client_ip(&http);
    let place = app
        .limits
        .sockets
        .acquire(caller.id(), shown, address)
        .await;
    let Some(place) = place else {
        return Err(Problem {
            retry_after: Some(10),
            ..Problem::new(429, "rate_limited", "Too many of your sockets are open.")
        });
    };
    let caller = socket_caller::SocketCaller {
        user: caller.id(),
        credential: caller.credential,
    };
    actix_web::rt::spawn(async move {
        socket_session::serve(app, caller, inlet, outlet).await;
        drop(place);
    });
    Ok(answer)
}
