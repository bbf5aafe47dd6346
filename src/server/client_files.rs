//! Serves the files of the web client for paths that no endpoint matches. The build packs and
//! compresses them (`build.rs`). Files whose name contains a hash may be kept forever; pages are
//! revalidated by their entity tag.

use actix_web::body::MessageBody;
use actix_web::http::header::{
    AcceptEncoding, ContentEncoding, ETag, Encoding, EntityTag, Header, IfNoneMatch,
};
use actix_web::http::{Method, header};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};

use crate::web::error::{ApiError, ApiResult};

/// A packed file of the client.
struct ClientFile {
    name: &'static str,
    media_type: &'static str,
    /// The hash of the content.
    hash: &'static str,
    /// Whether the name contains a hash, so that the content never changes.
    is_hashed: bool,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
    brotli: Option<&'static [u8]>,
}

/// The packed files, ordered by name.
static FILES: &[ClientFile] = include!(concat!(env!("OUT_DIR"), "/client_files.rs"));

/// Paths that the client routes itself: they are answered with `index.html`.
const CLIENT_ROUTES: [&str; 4] = ["admin", "c", "join", "settings"];

const CACHE_FOREVER: &str = "public, max-age=31536000, immutable";
/// For files that rarely change and need not be new.
const CACHE_DAY: &str = "public, max-age=86400";
const CACHE_REVALIDATE: &str = "no-cache";

/// Returns the paths of all files of the client.
pub fn paths() -> impl Iterator<Item = String> {
    FILES.iter().map(|file| format!("/{}", file.name))
}

/// Serves a file of the client for a path that no endpoint matches.
///
/// # Errors
/// 404 when no such file exists; 405 when the method is neither GET nor HEAD.
pub async fn serve(request: HttpRequest) -> ApiResult<HttpResponse> {
    let Some(file) = find_file(request.path()) else {
        return Err(ApiError::not_found());
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(ApiError::new(
            405,
            "method_not_allowed",
            "This path does not support this method.",
        ));
    }
    let (body, encoding) = file.encoded_for(&request);
    let tag = match encoding {
        Some(encoding) => format!("{}-{}", file.hash, encoding.as_str()),
        None => file.hash.to_owned(),
    };
    let cache = match file.name.rsplit('.').next() {
        _ if file.is_hashed => CACHE_FOREVER,
        Some("html") => CACHE_REVALIDATE,
        _ => CACHE_DAY,
    };
    let (mut response, is_known) = begin(&request, EntityTag::new_strong(tag), cache);
    response.insert_header((header::VARY, "accept-encoding"));
    if is_known {
        return Ok(response.finish());
    }
    if let Some(encoding) = encoding {
        response.insert_header(encoding);
    }
    response.insert_header((header::CONTENT_TYPE, file.media_type));
    Ok(response.body(body))
}

impl ClientFile {
    /// Returns the content in the first of brotli and gzip that the client accepts; `None` is not
    /// encoded.
    fn encoded_for(&self, request: &HttpRequest) -> (&'static [u8], Option<ContentEncoding>) {
        let encodings = [
            (ContentEncoding::Brotli, Encoding::brotli(), self.brotli),
            (ContentEncoding::Gzip, Encoding::gzip(), self.gzip),
        ];
        let accepted = AcceptEncoding::parse(request).ok();
        for (name, encoding, content) in encodings {
            let is_accepted = accepted
                .as_ref()
                .is_some_and(|it| it.negotiate([&encoding].into_iter()) == Some(encoding.clone()));
            if let (true, Some(content)) = (is_accepted, content) {
                return (content, Some(name));
            }
        }
        (self.plain, None)
    }
}

/// Returns the entity tag of a document from the SHA-256 hash of its content.
pub fn etag_from_hash(hash: &[u8; 32]) -> EntityTag {
    EntityTag::new_strong(hex::encode(&hash[..16]))
}

/// Responds with a document, or with 304 if the client has it already. The client revalidates each
/// time, so that it gets a new version immediately.
pub fn respond_with_etag(
    request: &HttpRequest,
    tag: EntityTag,
    media_type: &str,
    body: impl MessageBody + 'static,
) -> HttpResponse {
    let (mut response, is_known) = begin(request, tag, CACHE_REVALIDATE);
    if is_known {
        return response.finish();
    }
    response.insert_header((header::CONTENT_TYPE, media_type));
    response.body(body)
}

/// Begins a response with its entity tag. Returns also whether the client has the content already;
/// the response is then 304.
fn begin(request: &HttpRequest, tag: EntityTag, cache: &str) -> (HttpResponseBuilder, bool) {
    let is_known = is_known(request, &tag);
    let mut response = match is_known {
        true => HttpResponse::NotModified(),
        false => HttpResponse::Ok(),
    };
    response
        .insert_header((header::CACHE_CONTROL, cache))
        .insert_header(ETag(tag));
    (response, is_known)
}

fn find_file(path: &str) -> Option<&'static ClientFile> {
    let path = path.strip_prefix('/')?;
    let first = path.split('/').next().unwrap_or_default();
    let name = match path {
        "" => "index.html",
        "docs" => "docs.html",
        _ if CLIENT_ROUTES.contains(&first) => "index.html",
        _ => path,
    };
    let index = FILES.binary_search_by(|file| file.name.cmp(name)).ok()?;
    FILES.get(index)
}

fn is_known(request: &HttpRequest, tag: &EntityTag) -> bool {
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(known)) => known.iter().any(|it| it.weak_eq(tag)),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{FILES, find_file};

    #[test]
    fn every_packed_file_is_found_and_no_other() {
        for file in FILES {
            let found = find_file(&format!("/{}", file.name));
            assert_eq!(found.map(|it| it.name), Some(file.name));
        }
        for path in [
            "/../Cargo.toml",
            "/assets/../index.html",
            "/assets//main.js",
            "/..%2fCargo.toml",
            "/.env",
            "/index.html\0",
            "//etc/passwd",
            "/assets/",
            "/js/main.js",
            "/nothing.js",
        ] {
            assert!(find_file(path).is_none(), "{path}");
        }
    }
}
