//! Download headers of all exports, and for those of cards, spaces and memories: permits that limit
//! concurrent exports, and file responses.

use std::fs::File;
use std::io::Seek;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::{ContentDisposition, DispositionParam, DispositionType};
use actix_web::web::Bytes;
use futures::stream;
use tokio::io::AsyncReadExt;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::web::error::{ApiError, ApiResult};

/// The number of cards and of spaces that are exported concurrently.
static CARD_PERMITS: Semaphore = Semaphore::const_new(2);
static SPACE_PERMITS: Semaphore = Semaphore::const_new(4);
/// The number of exports and imports of memories at the same time. Each reads or writes without a
/// pause.
static MEMORY_PERMITS: Semaphore = Semaphore::const_new(2);

/// How long an export waits for a permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(120);

/// How much of a file is in memory while it is sent, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;

/// Waits for a permit to build a card file. Release it before the file is sent.
///
/// # Errors
/// Returns 503 `unavailable` when no permit becomes free in time.
pub async fn acquire_card_permit() -> ApiResult<SemaphorePermit<'static>> {
    acquire_permit(&CARD_PERMITS).await
}

/// Waits for a permit to build a space file.
///
/// # Errors
/// As [`acquire_card_permit`].
pub async fn acquire_space_permit() -> ApiResult<SemaphorePermit<'static>> {
    acquire_permit(&SPACE_PERMITS).await
}

/// Waits for a permit to export or import memories. Release it before the file is sent.
///
/// # Errors
/// As [`acquire_card_permit`].
pub async fn acquire_memory_permit() -> ApiResult<SemaphorePermit<'static>> {
    acquire_permit(&MEMORY_PERMITS).await
}

async fn acquire_permit(permits: &'static Semaphore) -> ApiResult<SemaphorePermit<'static>> {
    match timeout(PERMIT_TIMEOUT, permits.acquire()).await {
        Ok(permit) => permit.map_err(ApiError::internal),
        Err(_) => {
            let message = "Too many exports are in progress. Try again later.";
            let mut busy = ApiError::new(503, "unavailable", message);
            busy.retry_after = Some(10);
            Err(busy)
        }
    }
}

/// Streams a file from its beginning to its end.
///
/// # Errors
/// Returns 500 when the file cannot be read.
pub fn file_response(
    mut file: File,
    named: ContentDisposition,
    kind: &'static str,
) -> ApiResult<HttpResponse> {
    let n_bytes = file.metadata().map_err(ApiError::internal)?.len();
    file.rewind().map_err(ApiError::internal)?;
    let file = tokio::fs::File::from_std(file);
    let pieces = stream::try_unfold(file, |mut file| async move {
        let mut piece = vec![0; CHUNK_BYTES];
        let n_read = file.read(&mut piece).await?;
        piece.truncate(n_read);
        let piece = (n_read > 0).then(|| (Bytes::from(piece), file));
        Ok::<_, std::io::Error>(piece)
    });
    Ok(HttpResponse::Ok()
        .insert_header(named)
        .content_type(kind)
        // With the length known, browsers show the progress.
        .no_chunking(n_bytes)
        .streaming(pieces))
}

/// Builds the header for a download; special characters in the name are replaced.
pub fn attachment(name: &str, ending: &str) -> ContentDisposition {
    let name: String = name
        .chars()
        .map(|it| if it.is_alphanumeric() { it } else { '_' })
        .take(60)
        .collect();
    ContentDisposition {
        disposition: DispositionType::Attachment,
        parameters: vec![DispositionParam::Filename(format!("{name}.{ending}"))],
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::acquire_permit;

    #[tokio::test(start_paused = true)]
    async fn an_export_waits_for_a_permit_and_is_refused_at_the_deadline() {
        static TAKEN: Semaphore = Semaphore::const_new(0);
        static FREE: Semaphore = Semaphore::const_new(1);

        let refused = acquire_permit(&TAKEN).await.map(drop).unwrap_err();

        assert_eq!(
            (refused.status.as_u16(), refused.code),
            (503, "unavailable")
        );
        assert_eq!(refused.retry_after, Some(10));
        assert!(acquire_permit(&FREE).await.is_ok());
    }
}
