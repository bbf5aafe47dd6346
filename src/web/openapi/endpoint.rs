//! Defines [`ApiEndpoint`], a handler with its own method, path and OpenAPI description, and mounts
//! endpoints in the HTTP server.
//!
//! To add an endpoint: write the handler in `src/web/api/<module>.rs`; above it `#[utoipa::path(get,
//! path = "/api/…/{space_id}", tag = "<module>", …)]` with its input and responses; one line in
//! `src/web/api/routes.rs`; a test in `tests/it/api/<module>.rs`. There is no other way to mount a
//! handler (`src/web/v1/http/mounting.rs` mounts those under `/v1`), so every endpoint is in the API document. Endpoints with the same path share one
//! resource: a wrong method gets 405 with `Allow`. A path may contain a pattern,
//! `{character_id:\d+}`, if another endpoint of the same method has the same form.

use actix_web::http::Method;
use actix_web::web::ServiceConfig;
use actix_web::{Resource, Route, web};
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi, RefOr, Schema};

/// A schema with its name.
pub type NamedSchema = (String, RefOr<Schema>);

/// A handler with its description from `#[utoipa::path]`.
#[derive(Clone, Debug)]
pub struct ApiEndpoint {
    /// The router's path, with patterns.
    path: String,
    method: Method,
    route: fn() -> Route,
    /// Returns the API document of this endpoint alone.
    description: fn() -> OpenApi,
}

impl ApiEndpoint {
    /// Creates the endpoint that `description` describes and `route` leads to; used by
    /// `endpoints!`.
    ///
    /// # Panics
    /// Panics if the description does not have exactly one supported method.
    pub fn new(route: fn() -> Route, description: fn() -> OpenApi) -> Self {
        let (path, method, _) = sole_operation(description());
        Self {
            path,
            method,
            route,
            description,
        }
    }

    /// Returns the router's path, with patterns.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the HTTP method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the route to the handler, for any method.
    pub fn route(&self) -> Route {
        (self.route)()
    }

    /// Returns the operation for the API document.
    pub fn operation(&self) -> Operation {
        sole_operation((self.description)()).2
    }

    /// Returns the schemas that the operation uses.
    pub fn schemas(&self) -> Vec<NamedSchema> {
        let components = (self.description)().components;
        components.map_or(Vec::new(), |it| it.schemas.into_iter().collect())
    }
}

/// Returns the path, the method and the operation of a document that describes one endpoint.
fn sole_operation(document: OpenApi) -> (String, Method, Operation) {
    let operations = document.paths.paths.into_iter().flat_map(|(path, item)| {
        let methods = [
            (Method::GET, item.get),
            (Method::POST, item.post),
            (Method::PUT, item.put),
            (Method::PATCH, item.patch),
            (Method::DELETE, item.delete),
        ];
        methods.map(|(method, operation)| Some((path.clone(), method, operation?)))
    });
    let mut operations = operations.flatten();
    match (operations.next(), operations.next()) {
        (Some(sole), None) => sole,
        _ => panic!("an endpoint must have one supported method"),
    }
}

/// The endpoints of these handlers, each with its module: `endpoints![spaces::list,
/// spaces::create]`.
macro_rules! endpoints {
    ($($module:ident :: $handler:ident),* $(,)?) => {
        vec![$({
            #[derive(utoipa::OpenApi)]
            #[openapi(paths($module::$handler))]
            struct Description;
            $crate::web::openapi::endpoint::ApiEndpoint::new(
                || actix_web::web::to($module::$handler),
                <Description as utoipa::OpenApi>::openapi,
            )
        }),*]
    };
}

pub(crate) use endpoints;

/// The pattern of a row id. Numbers that are too large are refused when they are parsed.
const ROW_ID: &str = "[0-9]{1,19}";
/// The pattern of a run id.
const RUN_ID: &str = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";

/// Adds a pattern for each id in a path: what does not look like an id is 404 before a handler
/// reads it. Parsing alone would accept `+1` as 1.
fn with_id_patterns(path: &str) -> String {
    let parts = path.split('/').map(|part| {
        let name = part.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        match name.and_then(|it| it.split(':').next()) {
            Some("run_id") => format!("{{run_id:{RUN_ID}}}"),
            Some(name) if name.ends_with("_id") => format!("{{{name}:{ROW_ID}}}"),
            _ => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Removes the router's patterns from a path: `{character_id:\d+}` is shown as `{character_id}` in
/// the document and in metrics.
pub fn plain_path(path: &str) -> String {
    let parts = path.split('/').map(|part| match part.split_once(':') {
        Some((name, _)) if part.starts_with('{') => format!("{name}}}"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Mounts endpoints below `prefix`: one resource for each path, with all its methods.
pub fn mount(endpoints: &[ApiEndpoint], prefix: &str, config: &mut ServiceConfig) {
    let mut resources: Vec<(&str, Resource)> = Vec::new();
    for endpoint in endpoints {
        let route = (endpoint.route)().method(endpoint.method.clone());
        let path = endpoint.path.strip_prefix(prefix).unwrap_or(&endpoint.path);
        let index = resources.iter().position(|(known, _)| *known == path);
        let (_, resource) = match index {
            Some(at) => resources.remove(at),
            None => (path, web::resource(with_id_patterns(path))),
        };
        resources.insert(
            index.unwrap_or(resources.len()),
            (path, resource.route(route)),
        );
    }
    for (_, resource) in resources {
        config.service(resource);
    }
}
