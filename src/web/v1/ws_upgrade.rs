//! Handler of `GET /v1/responses`: upgrades the request to a WebSocket, or returns why it cannot.
//! `ws_session` then creates the responses that the client requests on it.

use actix_web::http::header::UPGRADE;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};

use crate::app::App;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::headers::cors;
use crate::web::v1::http::call_origin;
use crate::web::v1::parsing::body::MAX_BODY_BYTES;
use crate::web::v1::ws_session;
use crate::web::ws::socket_caller::SocketCaller;
use crate::web::ws::socket_upgrade;
use crate::web::ws::socket_upgrade::UpgradeError;

/// The methods of the path; GET only opens a socket.
pub const METHODS: &str = "GET, POST";

/// Opens a socket.
///
/// Each frame `{"type": "response.create", …}` of the client creates a response, and the frames of the server
/// are its events.
///
/// # Errors
/// Returns 405 without an upgrade, 403 for a page of an origin that may not call, 400 for an invalid upgrade,
/// 429 when the caller has too many sockets, and 503 during shutdown.
#[utoipa::path(
    get,
    path = "/v1/responses",
    operation_id = "open_socket",
    tag = "v1",
    params(
        ("Connection" = String, Header, pattern = "^Upgrade$"),
        ("Upgrade" = String, Header, pattern = "^websocket$"),
        ("Sec-WebSocket-Version" = String, Header, pattern = "^13$"),
        ("Sec-WebSocket-Key" = String, Header, pattern = "^[A-Za-z0-9+/]{21}[AQgw]==$"),
        ("Origin" = Option<String>, Header)
    ),
    responses(
        (status = 101, description = "The socket is open."),
        (status = 403, description = "`cross_origin`: pages of this origin may not open a socket."),
        (status = 429)
    )
)]
pub async fn connect(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    if !http.headers().contains_key(UPGRADE) {
        return Err(V1Error::method_not_allowed("GET", METHODS));
    }
    if !cors::may_open_socket(http.headers(), &app.config.cors_origins) {
        let message = "Pages of this origin may not open a socket; see TROUPE_CORS_ORIGINS.";
        return Err(V1Error::new(403, "cross_origin", message));
    }
    let origin = call_origin::of(&http, &caller);
    let caller = SocketCaller {
        user: caller.id(),
        credential: caller.credential,
    };
    let serve = |receiver, link| ws_session::serve(app.clone(), (caller, origin), receiver, link);
    let opened = socket_upgrade::open(&app, caller, (&http, payload), MAX_BODY_BYTES, serve).await;
    opened.map_err(|error| match error {
        UpgradeError::Draining => V1Error {
            retry_after: Some(socket_upgrade::RETRY_AFTER_DRAIN),
            ..V1Error::new(503, "overloaded", "The server is shutting down.")
        },
        UpgradeError::NotAnUpgrade(_) => {
            let message = "This is not a WebSocket upgrade request.";
            V1Error::new(400, "invalid_value", message)
        }
        UpgradeError::TooManySockets => V1Error {
            retry_after: Some(socket_upgrade::RETRY_AFTER_LIMIT),
            ..V1Error::new(429, "rate_limited", "You have too many open sockets.")
        },
    })
}
