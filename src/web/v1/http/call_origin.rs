//! Identifies the request of a call for its log line.

use actix_web::{HttpMessage, HttpRequest};

use crate::responses::telemetry::call_origin::CallOrigin;
use crate::web::extract::authentication::CurrentUser;
use crate::web::middleware::response_headers::RequestId;

/// Returns the id of a request and the beginning of its API key.
pub fn of(http: &HttpRequest, caller: &CurrentUser) -> CallOrigin {
    let id = http.extensions().get::<RequestId>().map(|it| it.0.clone());
    CallOrigin {
        request_id: id,
        key_prefix: caller.key_prefix.clone(),
    }
}
