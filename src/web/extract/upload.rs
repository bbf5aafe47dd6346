//! Extracts a form with one uploaded file, and with a text if the handler expects one. The file is received
//! into memory or a temporary file only when the handler requests it, so that authorization runs first.
//!
//! **Invariant:** never more than the limit is stored, however much is sent, and a refused file
//! leaves nothing behind: the temporary file has no name.

use std::fs::File;
use std::future::{Ready, ready};
use std::io::{Seek, Write};

use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap};
use actix_web::web::Bytes;
use actix_web::{FromRequest, HttpRequest};
use futures::StreamExt;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::request_body;

/// The field with the file.
const FIELD: &str = "file";
/// Allowance for the form data around the file, in bytes.
const FORM_OVERHEAD_BYTES: u64 = 64 * 1024;
/// The name is shown, and its end is checked.
const MAX_NAME_CHARS: usize = 255;

/// A form with one file.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FileForm)]
#[allow(dead_code)] // only the document reads it
pub struct UploadForm {
    /// The file itself.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// A form that has not been read yet.
pub struct PendingUpload {
    payload: Payload,
    headers: HeaderMap,
}

/// A file in memory.
pub struct MemoryUpload {
    /// The owner's name for it; only for display and for guessing the type. May be empty.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// A field with a text in a form.
#[derive(Clone, Copy, Debug)]
pub struct TextField {
    pub name: &'static str,
    pub max_bytes: usize,
}

/// A file that is passed on, and the text of the form.
struct ReceivedForm {
    file_name: String,
    text: Option<String>,
}

/// An anonymous temporary file, positioned at its beginning.
pub struct TempFileUpload {
    /// The owner's name for it; only for display and for guessing the type. May be empty.
    pub name: String,
    pub file: File,
    pub n_bytes: u64,
}

impl FromRequest for PendingUpload {
    type Error = ApiError;
    type Future = Ready<ApiResult<Self>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        ready(Ok(Self {
            payload: payload.take(),
            headers: request.headers().clone(),
        }))
    }
}

impl PendingUpload {
    /// Reads the file into memory.
    ///
    /// # Errors
    /// Returns 415 if this is not a form, 413 if it exceeds `limit` bytes, 400 without a file.
    pub async fn read(self, limit: u64) -> ApiResult<MemoryUpload> {
        let mut bytes = Vec::new();
        let form = self
            .receive(limit, None, |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            })
            .await?;
        let name = form.file_name;
        Ok(MemoryUpload { name, bytes })
    }

    /// Saves the file on disk, because it may be too large for memory.
    ///
    /// # Errors
    /// As [`PendingUpload::read`]; 500 when the disk cannot be written.
    pub async fn save(self, limit: u64) -> ApiResult<TempFileUpload> {
        Ok(self.save_form(limit, None).await?.0)
    }

    /// Saves the file on disk, and returns it with the text of the form, if there is one.
    ///
    /// # Errors
    /// As [`PendingUpload::save`]; 422 `too_long` for a text that is longer than allowed, and
    /// `invalid_value` for one that is not UTF-8 or contains U+0000.
    pub async fn save_with_text(
        self,
        limit: u64,
        text: TextField,
    ) -> ApiResult<(TempFileUpload, Option<String>)> {
        self.save_form(limit, Some(text)).await
    }

    async fn save_form(
        self,
        limit: u64,
        text: Option<TextField>,
    ) -> ApiResult<(TempFileUpload, Option<String>)> {
        let mut file = tempfile::tempfile().map_err(ApiError::internal)?;
        let mut n_bytes = 0;
        let form = self
            .receive(limit, text, |piece| {
                n_bytes += piece.len() as u64;
                file.write_all(piece)
            })
            .await?;
        file.rewind().map_err(ApiError::internal)?;
        let saved = TempFileUpload {
            name: form.file_name,
            file,
            n_bytes,
        };
        Ok((saved, form.text))
    }

    /// Passes the file on in pieces, and returns its name and the text of the form.
    async fn receive(
        self,
        limit: u64,
        expected: Option<TextField>,
        mut write_chunk: impl FnMut(&[u8]) -> std::io::Result<()>,
    ) -> ApiResult<ReceivedForm> {
        self.require_form()?;
        self.require_declared_size(limit)?;
        let mut form = Multipart::new(&self.headers, self.payload);
        let (mut name, mut text) = (None, None);
        while let Some(field) = form.next().await {
            let mut field = field.map_err(form_error)?;
            if let Some(expected) = expected.filter(|it| field.name() == Some(it.name)) {
                if text.is_some() {
                    return Err(ApiError::invalid_value(
                        expected.name,
                        "Only one is allowed.",
                    ));
                }
                text = Some(read_text(&mut field, expected).await?);
                continue;
            }
            if field.name() != Some(FIELD) {
                let found: String = field.name().unwrap_or_default().chars().take(100).collect();
                let message = format!("Unknown field `{found}`.");
                return Err(ApiError::new(400, "unknown_field", message).with_param(found));
            }
            if name.is_some() {
                let message = "Only one file is allowed.";
                return Err(ApiError::invalid_value(FIELD, message));
            }
            name = Some(file_name(&field));
            let mut n_bytes = 0;
            while let Some(piece) = field.next().await {
                let piece: Bytes = piece.map_err(form_error)?;
                n_bytes += piece.len() as u64;
                if n_bytes > limit {
                    return Err(too_large(limit));
                }
                write_chunk(&piece).map_err(ApiError::internal)?;
            }
        }
        let file_name = name.ok_or_else(|| {
            let message = "The file must be in the field `file`.";
            ApiError::new(400, "missing_field", message).with_param(FIELD)
        })?;
        Ok(ReceivedForm { file_name, text })
    }

    fn require_form(&self) -> ApiResult<()> {
        let header = |name| self.headers.get(name)?.to_str().ok();
        let kind = header(actix_web::http::header::CONTENT_TYPE).unwrap_or_default();
        let encoding = header(CONTENT_ENCODING).unwrap_or("identity");
        let is_form = request_body::is_media_type(kind, "multipart/form-data");
        match is_form && encoding.eq_ignore_ascii_case("identity") {
            true => Ok(()),
            false => Err(ApiError::new(
                415,
                "unsupported_media_type",
                "The body must be an uncompressed form with one file, `Content-Type: multipart/form-data`.",
            )),
        }
    }

    fn require_declared_size(&self, limit: u64) -> ApiResult<()> {
        let declared_length = self.headers.get(CONTENT_LENGTH);
        let announced = declared_length.and_then(|it| it.to_str().ok()?.parse().ok());
        match announced.is_some_and(|it: u64| it > limit + FORM_OVERHEAD_BYTES) {
            true => Err(too_large(limit)),
            false => Ok(()),
        }
    }
}

/// Reads a text of the form.
async fn read_text(field: &mut Field, expected: TextField) -> ApiResult<String> {
    let mut bytes = Vec::new();
    while let Some(piece) = field.next().await {
        bytes.extend_from_slice(&piece.map_err(form_error)?);
        if bytes.len() > expected.max_bytes {
            let message = format!("A text of at most {} bytes is allowed.", expected.max_bytes);
            return Err(ApiError::new(422, "too_long", message).with_param(expected.name));
        }
    }
    let text = String::from_utf8(bytes)
        .ok()
        .filter(|it| !it.contains('\0'));
    let message = "Must be a text in UTF-8 without the character U+0000.";
    text.ok_or_else(|| ApiError::invalid_value(expected.name, message))
}

/// Returns the owner's name for the file, without the folders that some browsers send.
fn file_name(field: &Field) -> String {
    let given_name = field.content_disposition().and_then(|it| it.get_filename());
    let name = given_name.unwrap_or_default().rsplit(['/', '\\']).next();
    let name = name.unwrap_or_default().chars();
    name.filter(|it| !it.is_control())
        .take(MAX_NAME_CHARS)
        .collect()
}

fn form_error(error: MultipartError) -> ApiError {
    if let MultipartError::Payload(error) = &error
        && request_body::is_timeout(error)
    {
        return request_body::timeout_error();
    }
    let message = match error {
        MultipartError::Incomplete | MultipartError::Payload(_) => "The file is incomplete.",
        _ => "The form is malformed.",
    };
    ApiError::new(400, "invalid_form", message)
}

fn too_large(limit: u64) -> ApiError {
    let most = limit / 1024 / 1024;
    let message = format!("The file is larger than {most} MiB.");
    ApiError::new(413, "too_large", message).with_param(FIELD)
}
