//! `/openapi.json`: the API document, built once and open to everyone.

use actix_web::http::header::EntityTag;
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use sha2::{Digest, Sha256};

use crate::server::{client_files, endpoints};

/// The document as it is sent.
pub struct OpenApiFile {
    json: Bytes,
    tag: EntityTag,
}

impl OpenApiFile {
    /// The document of all doors.
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

/// This document.
///
/// Generated from the code that answers. `/docs` shows it as a page.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "server",
    security(),
    responses(
        (status = 200, description = "OpenAPI 3.1.", body = Object),
        (status = 304, description = "It is still the one that `If-None-Match` names.")
    )
)]
pub async fn document(request: HttpRequest, file: Data<OpenApiFile>) -> HttpResponse {
    let OpenApiFile { json, tag } = file.as_ref();
    client_files::respond_with_etag(&request, tag.clone(), "application/json", json.clone())
}
