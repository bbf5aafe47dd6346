//! Middleware that aborts a request body that arrives too slowly and closes its connection, and a
//! function that reads a body into memory up to a size limit.
//!
//! **Invariant:** a connection whose request body was not read to its end is closed after the
//! response, however the body is framed.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::{Method, header};
use actix_web::middleware::Next;
use actix_web::web::{Bytes, Data};
use actix_web::{Error, HttpMessage};
use futures::{Stream, StreamExt};
use tokio::time::{Instant, Sleep};

use crate::app::App;
use crate::rate_limit::body_timeouts::BodyTimeouts;
use crate::rate_limit::connections::Connections;
use crate::web::error::ApiError;

/// How often a waiting reader checks whether connections have become scarce.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The outermost middleware: applies the deadlines to the body of every request but an upgrade.
///
/// # Errors
/// Returns errors that the inner services did not turn into a response.
pub async fn limit(
    app: Data<App>,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let payload = match request.take_payload() {
        payload if matches!(payload, Payload::None) || is_upgrade(&request) => {
            request.set_payload(payload);
            return Ok(next.call(request).await?.map_into_boxed_body());
        }
        payload => payload,
    };
    let source = PayloadSource::new(payload);
    let rate = match is_form(&request) {
        true => app.body_timeouts.upload_rate,
        false => app.body_timeouts.json_rate,
    };
    let connections = app.connections.clone();
    let paced = PacedBody::new(source.clone(), (app.body_timeouts, rate), connections);
    request.set_payload(Payload::Stream {
        payload: Box::pin(paced),
    });
    let mut answer = next.call(request).await?.map_into_boxed_body();
    if source.is_read() {
        return Ok(answer);
    }
    // Kept until head and body are sent: the framework closes a connection with an unread body, but
    // waits without limit for the rest of a dropped chunked one.
    let kept = source.clone();
    answer.response_mut().extensions_mut().insert(kept);
    Ok(answer.map_body(|_, body| {
        BoxBody::new(WithUnreadBody {
            body,
            _source: source,
        })
    }))
}

/// Returns whether this is an upgrade, whose body is the socket itself, with its own limits. A
/// request that announces a chunked body is not an upgrade.
fn is_upgrade(request: &ServiceRequest) -> bool {
    let headers = request.headers();
    *request.method() == Method::GET
        && headers.contains_key(header::UPGRADE)
        && !headers.contains_key(header::TRANSFER_ENCODING)
}

fn is_form(request: &ServiceRequest) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.map_or(&b""[..], |value| value.as_bytes());
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    essence
        .trim_ascii()
        .eq_ignore_ascii_case(b"multipart/form-data")
}

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is longer than the limit.
    TooLarge,
    /// It arrived too slowly.
    TimedOut,
    /// The connection broke, or the framing of the body is invalid.
    Incomplete,
}

/// Reads a body of at most `limit` bytes into memory. Before more is kept, `admit` is called with
/// the length that the part read so far would have.
///
/// # Errors
/// Returns a `BodyError`, or the error of `admit`.
pub async fn read<E: From<BodyError>>(
    mut payload: impl Stream<Item = Result<Bytes, PayloadError>> + Unpin,
    content_length: Option<&str>,
    limit: usize,
    mut admit: impl FnMut(usize) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let declared: Option<u64> = content_length.and_then(|it| it.parse().ok());
    if declared.is_some_and(|it| it > limit as u64) {
        return Err(BodyError::TooLarge.into());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| match is_timeout(&error) {
            true => BodyError::TimedOut,
            false => BodyError::Incomplete,
        })?;
        let n_bytes = bytes.len() + chunk.len();
        if n_bytes > limit {
            return Err(BodyError::TooLarge.into());
        }
        admit(n_bytes)?;
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Returns whether a `Content-Type` has this media type, with any parameters.
pub fn is_media_type(content_type: &str, media_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(media_type)
}

/// Returns whether a body could not be read because it arrived too slowly.
pub fn is_timeout(error: &PayloadError) -> bool {
    matches!(error, PayloadError::Io(error) if error.kind() == io::ErrorKind::TimedOut)
}

/// Returns 408 `request_timeout`.
pub fn timeout_error() -> ApiError {
    let message = "The request took too long to arrive. Send it again.";
    ApiError::new(408, "request_timeout", message)
}

/// The bytes of a request, shared by its reader and its response.
#[derive(Clone)]
struct PayloadSource(Rc<RefCell<SharedPayload>>);

struct SharedPayload {
    payload: Payload,
    is_read: bool,
}

impl PayloadSource {
    fn new(payload: Payload) -> Self {
        let is_read = false;
        Self(Rc::new(RefCell::new(SharedPayload { payload, is_read })))
    }

    fn is_read(&self) -> bool {
        self.0.borrow().is_read
    }
}

impl Stream for PayloadSource {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut incoming = self.0.borrow_mut();
        let next = ready!(Pin::new(&mut incoming.payload).poll_next(context));
        incoming.is_read |= next.is_none();
        Poll::Ready(next)
    }
}

/// A body that ends with an error if it arrives too slowly. Only the time in which its reader waits
/// for the client counts.
struct PacedBody<S> {
    source: S,
    pace: BodyTimeouts,
    /// In bytes per second.
    rate: u32,
    connections: Arc<Connections>,
    n_bytes: u64,
    waited: Duration,
    waiting_since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl<S> PacedBody<S> {
    fn new(source: S, (pace, rate): (BodyTimeouts, u32), connections: Arc<Connections>) -> Self {
        Self {
            source,
            pace,
            rate,
            connections,
            n_bytes: 0,
            waited: Duration::ZERO,
            waiting_since: None,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
        }
    }

    /// Returns how long the reader may have waited for the client, given the bytes received so far.
    fn allowed(&self) -> Duration {
        let grace = match self.connections.is_crowded() {
            true => self.pace.crowded_grace,
            false => self.pace.grace,
        };
        let ms = self.n_bytes.saturating_mul(1_000) / u64::from(self.rate.max(1));
        grace.max(Duration::from_millis(ms))
    }
}

impl<S> Stream for PacedBody<S>
where
    S: Stream<Item = Result<Bytes, PayloadError>> + Unpin,
{
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Poll::Ready(next) = Pin::new(&mut this.source).poll_next(context) {
            let since = this.waiting_since.take();
            this.waited += since.map_or(Duration::ZERO, |it| it.elapsed());
            if let Some(Ok(piece)) = &next {
                this.n_bytes += piece.len() as u64;
            }
            return Poll::Ready(next);
        }
        let since = *this.waiting_since.get_or_insert_with(Instant::now);
        loop {
            let now = Instant::now();
            let until = since + this.allowed().saturating_sub(this.waited);
            if until <= now {
                let late = io::Error::from(io::ErrorKind::TimedOut);
                return Poll::Ready(Some(Err(PayloadError::Io(late))));
            }
            this.timer.as_mut().reset(until.min(now + POLL_INTERVAL));
            ready!(this.timer.as_mut().poll(context));
        }
    }
}

/// The body of a response to a request whose own body was not read to its end.
struct WithUnreadBody {
    body: BoxBody,
    _source: PayloadSource,
}

impl MessageBody for WithUnreadBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}

#[cfg(test)]
#[path = "request_body_tests.rs"]
mod tests;
