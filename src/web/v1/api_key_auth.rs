//! Authenticates all requests under `/v1`, by API key only; cookies are ignored.

use std::future::{Ready, ready};

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest};

use crate::app::App;
use crate::web::extract::authentication;
use crate::web::extract::authentication::CurrentUser;
use crate::web::v1::error::V1Error;
use crate::web::v1::headers::cors;

/// The document of this API, which needs no key.
const OPEN_PATH: &str = "/v1/openapi.json";

/// The caller, authenticated by an API key.
#[derive(Clone, Debug)]
pub struct ApiKeyCaller(pub CurrentUser);

impl FromRequest for ApiKeyCaller {
    type Error = V1Error;
    type Future = Ready<Result<Self, V1Error>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = request.extensions().get::<Self>().cloned();
        ready(found.ok_or_else(missing_key))
    }
}

/// Middleware of everything under `/v1`: authenticates the API key of a request. A preflight request of a
/// browser has no key and is not authenticated, and the document needs none.
///
/// # Errors
/// Only errors that the inner services did not turn into a response.
pub async fn authenticate(
    app: Data<App>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let origins = &app.config.cors_origins;
    let is_open = request.path() == OPEN_PATH;
    if is_open || cors::is_preflight(request.method(), request.headers(), origins) {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let found = authentication::from_api_key(&app, request.request()).await;
    match found
        .map_err(V1Error::from)
        .and_then(|it| it.ok_or_else(missing_key))
    {
        Ok(caller) => request.extensions_mut().insert(ApiKeyCaller(caller)),
        Err(problem) => return Ok(request.error_response(problem)),
    };
    Ok(next.call(request).await?.map_into_boxed_body())
}

fn missing_key() -> V1Error {
    let message = "Send an API key: `Authorization: Bearer trp_…`.";
    V1Error::new(401, "invalid_api_key", message)
}
