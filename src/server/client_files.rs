//! Serves the web client, which is embedded in the binary. A debug build reads it from `static/`
//! for each request.

use actix_web::body::MessageBody;
use actix_web::http::header::{ETag, EntityTag, Header, IfNoneMatch};
use actix_web::http::{Method, header};
use actix_web::{HttpRequest, HttpResponse};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::web::error::{ApiError, ApiResult};

#[derive(RustEmbed)]
#[folder = "static/"]
struct ClientFiles;

/// Paths that the client routes itself: they are answered with `index.html`.
const CLIENT_ROUTES: [&str; 4] = ["admin", "c", "join", "settings"];

/// Serves a file of the client for a path that no endpoint matches.
///
/// # Errors
/// 404 when no such file exists; 405 when the method is neither GET nor HEAD.
pub async fn serve(request: HttpRequest) -> ApiResult<HttpResponse> {
    let Some((name, file)) = find_file(request.path()) else {
        return Err(ApiError::not_found());
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(ApiError::new(
            405,
            "method_not_allowed",
            "This path does not support this method.",
        ));
    }
    let tag = etag_from_hash(&file.metadata.sha256_hash());
    Ok(respond_with_etag(
        &request,
        tag,
        &media_type(&name),
        file.data,
    ))
}

/// Returns the entity tag of a file from the SHA-256 hash of its content.
pub fn etag_from_hash(hash: &[u8; 32]) -> EntityTag {
    EntityTag::new_strong(hex::encode(&hash[..16]))
}

/// Responds with a file, or with 304 if the client has it already. The client revalidates each
/// time, so that it gets a new version immediately.
pub fn respond_with_etag(
    request: &HttpRequest,
    tag: EntityTag,
    media_type: &str,
    body: impl MessageBody + 'static,
) -> HttpResponse {
    let is_known = is_known(request, &tag);
    let mut response = match is_known {
        true => HttpResponse::NotModified(),
        false => HttpResponse::Ok(),
    };
    response
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header(ETag(tag));
    if is_known {
        return response.finish();
    }
    response.insert_header((header::CONTENT_TYPE, media_type));
    response.body(body)
}

fn find_file(path: &str) -> Option<(String, EmbeddedFile)> {
    let path = path.strip_prefix('/')?;
    let first = path.split('/').next().unwrap_or_default();
    let name = match path {
        "" => "index.html",
        "docs" => "docs.html",
        _ if CLIENT_ROUTES.contains(&first) => "index.html",
        _ => path,
    };
    // A debug build opens the name as a path on disk, which must not leave the folder.
    let is_plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || "._-".contains(it))
    };
    if !name.split('/').all(is_plain) {
        return None;
    }
    ClientFiles::get(name).map(|file| (name.to_owned(), file))
}

fn is_known(request: &HttpRequest, tag: &EntityTag) -> bool {
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(known)) => known.iter().any(|it| it.weak_eq(tag)),
        Err(_) => false,
    }
}

fn media_type(name: &str) -> String {
    match name.rsplit('.').next() {
        Some("js" | "mjs") => "text/javascript; charset=utf-8".to_owned(),
        Some("css") => "text/css; charset=utf-8".to_owned(),
        Some("html") => "text/html; charset=utf-8".to_owned(),
        Some("webmanifest") => "application/manifest+json".to_owned(),
        _ => mime_guess::from_path(name)
            .first_or_octet_stream()
            .to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{find_file, media_type};

    #[test]
    fn no_path_escapes_the_folder() {
        for path in [
            "/../Cargo.toml",
            "/js/../../Cargo.toml",
            "/js//main.js",
            "/..%2fCargo.toml",
            "/js/..;/main.js",
            "/.env",
            "/js/\\..\\main.js",
            "/js/main.js\0",
            "//etc/passwd",
            "/js/",
            "/nothing.js",
        ] {
            assert!(find_file(path).is_none(), "{path}");
        }
    }

    #[test]
    fn scripts_and_styles_have_the_type_that_browsers_ask_for() {
        assert_eq!(media_type("js/main.js"), "text/javascript; charset=utf-8");
        assert_eq!(media_type("css/base.css"), "text/css; charset=utf-8");
        assert_eq!(media_type("favicon.svg"), "image/svg+xml");
        assert_eq!(media_type("x.unknown"), "application/octet-stream");
    }
}
