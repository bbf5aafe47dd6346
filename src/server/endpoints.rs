//! Collects all endpoints of the server, separates those below `/api` and `/v1` from the others, and
//! returns the OpenAPI documents of all of them and of `/v1` alone.

use serde_json::Value;

use crate::server::openapi;
use crate::web::api::routes;
use crate::web::live::{frame_schemas as frames, upgrade};
use crate::web::openapi::endpoint::{ApiEndpoint, endpoints};
use crate::web::openapi::{document, v1_errors};
use crate::web::v1::routes as v1_routes;

/// All endpoints, grouped by the middleware around them.
#[derive(Clone)]
pub struct Endpoints {
    /// Below `/api`: the caller is authenticated before the handler runs.
    pub api: Vec<ApiEndpoint>,
    /// Below `/v1`: the caller is authenticated by an API key before the handler runs.
    pub v1: Vec<ApiEndpoint>,
    /// All others: they need no authentication or do it themselves.
    pub open: Vec<ApiEndpoint>,
}

/// Returns all endpoints.
pub fn all() -> Endpoints {
    let mut all = routes::all_endpoints();
    all.extend(endpoints![upgrade::connect, openapi::document]);
    let (api, open) = all.into_iter().partition(is_api_endpoint);
    let mut v1 = v1_routes::all_endpoints();
    v1.extend(endpoints![openapi::v1_document]);
    assert!(v1.iter().all(v1_errors::is_v1), "a path is not below /v1");
    Endpoints { api, v1, open }
}

fn is_api_endpoint(endpoint: &ApiEndpoint) -> bool {
    endpoint.path().starts_with("/api/")
}

impl Endpoints {
    /// Returns the OpenAPI document of all endpoints.
    pub fn document(&self) -> Value {
        let all = [self.api.clone(), self.open.clone(), self.v1.clone()].concat();
        document::document(&document::ALL, &all, &routes::TAGS, frames::schemas())
    }

    /// Returns the OpenAPI document of the endpoints under `/v1`.
    pub fn v1_document(&self) -> Value {
        document::document(&document::V1, &self.v1, &routes::TAGS, Vec::new())
    }
}
