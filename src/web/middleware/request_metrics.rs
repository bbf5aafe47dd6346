//! Middleware that counts and times requests by the path pattern of their endpoint, never by the
//! actual path.

use std::time::Instant;

use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::web::Data;

use crate::app::App;
use crate::web::openapi::endpoint;

/// The label of requests without an endpoint: client files and unknown paths. Clients can send any
/// number of different paths.
const NO_ROUTE: &str = "none";

/// Records the endpoint, the method, the status class and the duration of every request.
///
/// # Errors
/// Returns errors that the inner services did not turn into a response.
pub async fn count<B: MessageBody + 'static>(
    app: Data<App>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    let method = method_label(request.method());
    let began = Instant::now();
    let answer = next.call(request).await;
    let (route, status) = match &answer {
        Ok(answer) => (answer.request().match_pattern(), answer.status()),
        Err(error) => (None, error.as_response_error().status_code()),
    };
    let route = route.map_or_else(|| NO_ROUTE.to_owned(), |it| endpoint::plain_path(&it));
    let requests = &app.metrics.requests;
    requests.record(route, method, status_class(status), began.elapsed());
    answer
}

/// Returns a fixed set of labels: clients can send any word as a method.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn status_class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
