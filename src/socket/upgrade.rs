//! The upgrade: who calls, from where, and whether there is room for one more.

use crate::app::App;
use crate::http::auth;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiError;
use crate::http::peer;
use crate::socket::errand::Caller;
use crate::socket::session;
use crate::socket::wire;
use actix_web::Error;
use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::web::Data;
use actix_web::web::Payload;

/// Opens a socket.
#[utoipa::path(get, path = "/ws", tag = "socket")]
pub async fn connect(
    app: Data<App>,
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, Error> {
    let CurrentUser { user, by } = auth::socket_caller(&app, &request).await?;
    let caller = Caller { user: user.id, by };
    if app.shutdown.draining.is_cancelled() {
        let mut closing = ApiError::new(503, "internal", "The server is closing.");
        closing.retry_after = Some(1);
        return Err(closing.into());
    }
    let within = app.pace.write_within;
    let (answer, inlet, outlet) = wire::open(&request, payload, within).await?;
    // Only now: what is no upgrade at all takes no place.
    let address = peer::address_of(&request);
    let Some(place) = app.limits.sockets.take(caller.user, address) else {
        let most = "There are as many sockets open, yours or from where you are, as may be.";
        return Err(ApiError::rate_limited(10, most).into());
    };
    actix_web::rt::spawn(async move {
        session::serve(app, caller, inlet, outlet).await;
        drop(place);
    });
    Ok(answer)
}
