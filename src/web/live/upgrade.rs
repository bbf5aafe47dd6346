//! Handler of `GET /ws`: authenticates the caller, checks the origin of an upgrade with a cookie,
//! and opens a live socket within the limit of open sockets.

use actix_web::web::{Data, Payload};
use actix_web::{Error, HttpRequest, HttpResponse};
use realtime::envelope::Protocol;

use crate::app::App;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::{authentication, pagination};
use crate::web::live::session;
use crate::web::live::session::LiveClient;
use crate::web::ws::socket_caller::SocketCaller;
use crate::web::ws::socket_upgrade;
use crate::web::ws::socket_upgrade::UpgradeError;

/// The maximum size of a frame, and of a fragmented message, in bytes.
const MAX_FRAME_BYTES: usize = 64 * 1024;

/// Opens a socket. One socket can subscribe to at most 200 conversations and spaces.
///
/// A WebSocket upgrade. Every frame is one JSON object in a text frame, of at most 64 KiB. The
/// client sends `SocketCommand`, each with an `id`, and gets exactly one `SocketAnswer` to each;
/// between them it receives `SocketEvent`s of its subscriptions. More than 60 frames in 10 seconds
/// are refused with `rate_limited`. The server pings every 20 seconds and closes a connection that
/// is silent for 60. An upgrade authenticated by the cookie must send this server's own `Origin`.
///
/// `rev` of the durable events of one conversation grows by exactly 1: after a gap, or `resync`,
/// the client subscribes again with the last `rev` and gets everything it missed. `offset` of a
/// `stream_chunk` counts UTF-16 units, as a browser does.
///
/// With `?protocol=2`, a `stream_chunk` is a `SocketChunk`: it names the stream by the handle `h` of
/// the `typing_start`, or of the `stream` in a snapshot, that preceded it. All other frames are the
/// same.
#[utoipa::path(
    get,
    path = "/ws",
    tag = "socket",
    params(
        ("Connection" = String, Header, pattern = "^Upgrade$"),
        ("Upgrade" = String, Header, pattern = "^websocket$"),
        ("Sec-WebSocket-Version" = String, Header, pattern = "^13$"),
        ("Sec-WebSocket-Key" = String, Header, pattern = "^[A-Za-z0-9+/]{21}[AQgw]==$"),
        ("Origin" = Option<String>, Header, description = "Required with a cookie."),
        ("protocol" = Option<i64>, Query, minimum = 1, maximum = 2, description = "The version of the frames; the default is 1.")
    ),
    responses(
        (status = 101, description = "The socket is open."),
        (status = 400, description = "`invalid_value`: this is not a WebSocket upgrade, or the protocol is unknown."),
        (status = 403, description = "`cross_origin`: another site's page sent the cookie."),
        (status = 429, description = "`rate_limited`: too many open sockets of this user or address.")
    ),
    extensions(
        ("x-client-frame" = json!({"$ref": "#/components/schemas/SocketCommand"})),
        ("x-server-frame" = json!({"anyOf": [
            {"$ref": "#/components/schemas/SocketAnswer"},
            {"$ref": "#/components/schemas/SocketEvent"},
            {"$ref": "#/components/schemas/SocketChunk"},
        ]}))
    )
)]
pub async fn connect(
    app: Data<App>,
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, Error> {
    let CurrentUser {
        user, credential, ..
    } = authentication::authenticate_socket(&app, &request).await?;
    let caller = SocketCaller {
        user: user.id,
        credential,
    };
    let protocol = protocol(request.query_string())?;
    let client = LiveClient { caller, protocol };
    let serve = |receiver, link| session::serve(app.clone(), client, receiver, link);
    let opened =
        socket_upgrade::open(&app, caller, (&request, payload), MAX_FRAME_BYTES, serve).await;
    opened.map_err(|error| match error {
        UpgradeError::Draining => {
            let mut closing = ApiError::new(503, "internal", "The server is shutting down.");
            closing.retry_after = Some(socket_upgrade::RETRY_AFTER_DRAIN);
            closing.into()
        }
        UpgradeError::NotAnUpgrade(error) => error,
        UpgradeError::TooManySockets => {
            let most = "Too many open sockets of your account or address.";
            ApiError::rate_limited(socket_upgrade::RETRY_AFTER_LIMIT, most).into()
        }
    })
}

/// Parses `?protocol=`.
fn protocol(query: &str) -> ApiResult<Protocol> {
    let version: Option<String> = pagination::parse_value(query, "protocol")?;
    match version.as_deref() {
        None | Some("1") => Ok(Protocol::V1),
        Some("2") => Ok(Protocol::V2),
        Some(_) => {
            Err(ApiError::new(400, "invalid_value", "Must be 1 or 2.").with_param("protocol"))
        }
    }
}
