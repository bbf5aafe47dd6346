//! Every door of the house.

use serde_json::Value;

use crate::api::routes;
use crate::http::document;
use crate::http::endpoint::{ApiEndpoint, endpoints};
use crate::server::openapi;
use crate::socket::{frame_schemas as frames, upgrade};

/// All doors, by what stands around them.
#[derive(Clone)]
pub struct Endpoints {
    /// Below `/api`: who calls is found out before the handler is asked.
    pub api: Vec<ApiEndpoint>,
    /// The others, which ask nobody or look for themselves.
    pub open: Vec<ApiEndpoint>,
}

/// All doors.
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
    /// What the document says of them.
    pub fn document(&self) -> Value {
        let all = [self.api.clone(), self.open.clone()].concat();
        document::document(&all, &routes::TAGS, frames::schemas())
    }
}
