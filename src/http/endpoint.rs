//! Doors: a handler that carries its own method and path, mounted by what it carries.
//!
//! A new door, in four steps: write the handler in `src/api/<room>.rs`; above it
//! `#[utoipa::path(get, path = "/api/…/{space_id}", tag = "<room>", …)]` with what it takes and
//! answers; one line in `src/api/routes.rs`; a test in `tests/it/api/<room>.rs`. There is no other
//! way to mount a handler, so there is no door that the document does not tell of. Doors of one
//! path share one resource: a wrong method gets 405 with `Allow`. A path may hold a pattern,
//! `{character_id:\d+}`, when another door of the same method and shape stands beside it.

use actix_web::http::Method;
use actix_web::web::ServiceConfig;
use actix_web::{Resource, Route, web};
use utoipa::Path;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{HttpMethod, RefOr, Schema};

/// A schema with its name.
pub type NamedSchema = (String, RefOr<Schema>);

/// One handler, and what was written above it.
#[derive(Clone, Debug)]
pub struct ApiEndpoint {
    /// As the router takes it, with patterns.
    path: String,
    method: Method,
    route: fn() -> Route,
    operation: fn() -> Operation,
    tags: fn() -> Vec<&'static str>,
    schemas: fn(&mut Vec<NamedSchema>),
}

impl ApiEndpoint {
    /// The door that `D` describes and `route` leads to; [`doors`] puts the two together.
    ///
    /// # Panics
    /// When there is not exactly one method of those that doors have.
    pub fn new<D>(route: fn() -> Route) -> Self
    where
        D: Path + utoipa::__dev::Tags<'static> + utoipa::__dev::SchemaReferences,
    {
        let method = match D::methods().as_slice() {
            [HttpMethod::Get] => Method::GET,
            [HttpMethod::Post] => Method::POST,
            [HttpMethod::Put] => Method::PUT,
            [HttpMethod::Patch] => Method::PATCH,
            [HttpMethod::Delete] => Method::DELETE,
            _ => panic!("{} takes one method", D::path()),
        };
        Self {
            path: D::path(),
            method,
            route,
            operation: D::operation,
            tags: D::tags,
            schemas: D::schemas,
        }
    }

    /// As the router takes it, with patterns.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The one it answers.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// What is written above the handler.
    pub fn operation(&self) -> Operation {
        (self.operation)()
    }

    /// The room it belongs to.
    pub fn tags(&self) -> Vec<&'static str> {
        (self.tags)()
    }

    /// The schemas that its operation names.
    pub fn schemas(&self) -> Vec<NamedSchema> {
        let mut named = Vec::new();
        (self.schemas)(&mut named);
        named
    }
}

/// The endpoints of these handlers, each named with its file: `endpoints![spaces::list, spaces::create]`.
macro_rules! endpoints {
    ($($room:ident :: $handler:ident),* $(,)?) => {
        pastey::paste! {
            vec![$(
                $crate::http::endpoint::ApiEndpoint::new::<$room::[<__path_ $handler>]>(
                    || actix_web::web::to($room::$handler),
                )
            ),*]
        }
    };
}

pub(crate) use endpoints;

/// The form of an id of a row. Longer numbers than an id can be are refused when it is read.
const ROW_ID: &str = "[0-9]{1,19}";
/// The form of the id of a run.
const RUN_ID: &str = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";

/// A path with a pattern for each id: what does not look like an id is 404 before a handler reads
/// it. Parsing alone would accept `+1` as 1.
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

/// A path without the router's patterns: `{character_id:\d+}` is `{character_id}` to a reader and
/// in metrics.
pub fn plain_path(path: &str) -> String {
    let parts = path.split('/').map(|part| match part.split_once(':') {
        Some((name, _)) if part.starts_with('{') => format!("{name}}}"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Mounts doors below `prefix`: one resource for each path, with all its methods.
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
