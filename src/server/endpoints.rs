//! Collects all endpoints of the server except those of `/v1`, separates those below `/api` from
//! the others, and returns the OpenAPI document of all of them.

use serde_json::Value;

use crate::server::openapi;
use crate::web::api::routes;
use crate::web::live::{frame_schemas as frames, upgrade};
use crate::web::openapi::document;
use crate::web::openapi::endpoint::{ApiEndpoint, endpoints};

/// All endpoints, grouped by the middleware around them.
#[derive(Clone)]
pub struct Endpoints {
    /// Below `/api`: the caller is authenticated before the handler runs.
    pub api: Vec<ApiEndpoint>,
    /// All others: they need no authentication or do it themselves.
    pub open: Vec<ApiEndpoint>,
}

/// Returns all endpoints.
pub fn all() -> Endpoints {
    let mut all = routes::all_endpoints();
    all.extend(endpoints![upgrade::connect, openapi::document]);
    let (api, open) = all.into_iter().partition(is_api_endpoint);
    Endpoints { api, open }
}

fn is_api_endpoint(endpoint: &ApiEndpoint) -> bool {
    endpoint.path().starts_with("/api/")
}

impl Endpoints {
    /// Returns the OpenAPI document of the endpoints.
    pub fn document(&self) -> Value {
        let all = [self.api.clone(), self.open.clone()].concat();
        document::document(&all, &routes::TAGS, frames::schemas())
    }
}
