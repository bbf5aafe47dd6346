//! Serves `/openapi.json`, the public API document, which is built once.

use actix_web::http::header::EntityTag;
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use sha2::{Digest, Sha256};

use crate::server::{client_files, endpoints};

/// The encoded document and its entity tag.
pub struct OpenApiFile {
    json: Bytes,
    tag: EntityTag,
}

impl OpenApiFile {
    /// Builds the document of all endpoints.
    pub fn new() -> Self {
        let json = endpoints::all().document().to_string();
        Self {
            tag: client_files::etag_from_hash(&Sha256::digest(json.as_bytes()).into()),
            json: json.into(),
        }
    }
}

impl Default for OpenApiFile {
    fn default() -> Self {
        Self::new()
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
pub async fn document(request: HttpRequest, file: Data<OpenApiFile>) -> HttpResponse {
    let OpenApiFile { json, tag } = file.as_ref();
    client_files::respond_with_etag(&request, tag.clone(), "application/json", json.clone())
}
