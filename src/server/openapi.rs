//! Serves the OpenAPI documents at `/openapi.json` and `/v1/openapi.json`; each is built at its first
//! request and then kept in memory.

use std::sync::OnceLock;

use actix_web::http::header::EntityTag;
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::server::client_files;

/// The documents that are served.
pub struct OpenApiFiles {
    pub all: OpenApiFile,
    pub v1: OpenApiFile,
}

/// A document, built when it is requested for the first time: most processes never need it.
pub struct OpenApiFile {
    build: fn() -> Value,
    encoded: OnceLock<EncodedDocument>,
}

/// The encoded document and its entity tag.
struct EncodedDocument {
    json: Bytes,
    tag: EntityTag,
}

impl OpenApiFile {
    /// Serves the document that `build` returns.
    pub fn new(build: fn() -> Value) -> Self {
        Self {
            build,
            encoded: OnceLock::new(),
        }
    }

    fn respond(&self, request: &HttpRequest) -> HttpResponse {
        let EncodedDocument { json, tag } = self.get();
        client_files::respond_with_etag(request, tag.clone(), "application/json", json.clone())
    }

    fn get(&self) -> &EncodedDocument {
        self.encoded.get_or_init(|| {
            let json = (self.build)().to_string();
            EncodedDocument {
                tag: client_files::etag_from_hash(&Sha256::digest(json.as_bytes()).into()),
                json: json.into(),
            }
        })
    }
}

/// Returns this document.
///
/// It is generated from the code of the server. `/docs` shows it as a page.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "server",
    security(),
    responses(
        (status = 200, description = "The OpenAPI 3.1 document.", body = Object),
        (status = 304, description = "Unchanged since the version in `If-None-Match`.")
    )
)]
pub async fn document(request: HttpRequest, files: Data<OpenApiFiles>) -> HttpResponse {
    files.all.respond(&request)
}

/// Returns the document of `/v1`.
///
/// It is the part of `/openapi.json` for programs that use OpenAI's protocols.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    operation_id = "show_document",
    tag = "v1",
    security(),
    responses(
        (status = 200, description = "The OpenAPI 3.1 document.", body = Object),
        (status = 304, description = "Unchanged since the version in `If-None-Match`.")
    )
)]
pub async fn v1_document(request: HttpRequest, files: Data<OpenApiFiles>) -> HttpResponse {
    files.v1.respond(&request)
}
