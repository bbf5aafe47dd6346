//! Mounts the endpoints of `/v1`, and answers unknown paths and methods with errors of this API.
//!
//! There is no other way to mount a handler under `/v1`: an endpoint has a description for the API
//! document (`web/openapi/endpoint.rs`), and `tests/it/architecture.rs` finds a route that is created
//! elsewhere. HEAD is supported where GET is, except where GET opens a socket.

use actix_web::guard::{Any, Get, Head};
use actix_web::http::Method;
use actix_web::web::{Data, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, Resource, web};

use crate::app::App;
use crate::web::openapi::endpoint::ApiEndpoint;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::headers::cors;

/// The scope that contains these endpoints.
const SCOPE: &str = "/v1";

/// The status of the response that opens a WebSocket.
const SWITCHING_PROTOCOLS: &str = "101";

/// The methods in the order in which `Allow` lists them.
const ORDER: [Method; 5] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
];

/// Mounts these endpoints, and the answer to unknown paths.
pub fn mount(endpoints: &[ApiEndpoint], config: &mut ServiceConfig) {
    let mut paths: Vec<&str> = Vec::new();
    for endpoint in endpoints {
        if !paths.contains(&endpoint.path()) {
            paths.push(endpoint.path());
        }
    }
    for path in paths {
        let of_path: Vec<&ApiEndpoint> = endpoints.iter().filter(|it| it.path() == path).collect();
        config.service(resource(path, &of_path));
    }
    config.default_service(web::to(not_found));
}

/// Creates the resource of a path. It answers other methods in this API's error format, and the
/// preflight requests of browsers with the CORS headers.
fn resource(path: &str, endpoints: &[&ApiEndpoint]) -> Resource {
    let methods = allowed_methods(endpoints);
    let other = move |app: Data<App>, http: HttpRequest| {
        let methods = methods.clone();
        async move {
            let origins = &app.config.cors_origins;
            match cors::is_preflight(http.method(), http.headers(), origins) {
                true => Ok(cors::permission(&methods, http.headers())),
                false => Err(V1Error::method_not_allowed(
                    http.method().as_str(),
                    &methods,
                )),
            }
        }
    };
    let path = path.strip_prefix(SCOPE).unwrap_or(path);
    let resource = web::resource(path).default_service(web::to(other));
    endpoints.iter().fold(resource, |resource, endpoint| {
        resource.route(match has_head(endpoint) {
            // For HEAD, the server does not send the body.
            true => endpoint.route().guard(Any(Get()).or(Head())),
            false => endpoint.route().method(endpoint.method().clone()),
        })
    })
}

/// Returns the methods of a path, separated by commas.
fn allowed_methods(endpoints: &[&ApiEndpoint]) -> String {
    let mut methods = Vec::new();
    for method in ORDER {
        let Some(endpoint) = endpoints.iter().find(|it| *it.method() == method) else {
            continue;
        };
        methods.push(method.to_string());
        if has_head(endpoint) {
            methods.push(Method::HEAD.to_string());
        }
    }
    methods.join(", ")
}

/// Returns whether HEAD is supported like this method: for GET that opens no socket.
fn has_head(endpoint: &ApiEndpoint) -> bool {
    let responses = endpoint.operation().responses.responses;
    *endpoint.method() == Method::GET && !responses.contains_key(SWITCHING_PROTOCOLS)
}

async fn not_found(http: HttpRequest) -> V1Result<HttpResponse> {
    Err(V1Error::no_endpoint(http.method().as_str(), http.path()))
}
