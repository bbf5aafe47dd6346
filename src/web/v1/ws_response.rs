//! Starts the current response of a `/v1` WebSocket and returns its progress and events; a socket
//! has at most one response at a time.

use std::sync::Arc;

use actix_web::web::Data;
use futures::future::LocalBoxFuture;
use responses_api::event::EncodedEvent;
use serde_json::Value;

use crate::accounts::credential::Credential;
use crate::app::App;
use crate::responses::engine::Created;
use crate::responses::execution::event_stream::EventReceiver;
use crate::responses::request::ResponseRequest;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::remote_files;
use crate::web::ws::socket_caller::SocketCaller;

/// At most one response at a time.
pub enum CurrentResponse {
    None,
    Starting {
        previous: Option<String>,
        begin: LocalBoxFuture<'static, V1Result<ActiveResponse>>,
    },
    Active(ActiveResponse),
}

/// A response that has begun. Dropping it cancels it.
pub struct ActiveResponse {
    reader: EventReceiver,
    pub previous_response_id: Option<String>,
    /// The items before the model's output; `None` for a stored response, because the database has
    /// them.
    pub prior_items: Option<Vec<Value>>,
}

/// The next change of the current response.
pub enum ResponseProgress {
    Started(ActiveResponse),
    /// It did not begin. The first field is the id of the response to continue.
    Rejected(Option<String>, V1Error),
    Event(EncodedEvent),
    /// The stream ended without a terminal event.
    StreamLost,
}

impl CurrentResponse {
    /// Returns whether no response is in progress.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Waits for the next change; without a response it never completes.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next_progress(&mut self) -> ResponseProgress {
        match self {
            Self::None => std::future::pending().await,
            Self::Starting { previous, begin } => match begin.await {
                Ok(speaking) => ResponseProgress::Started(speaking),
                Err(problem) => ResponseProgress::Rejected(previous.take(), problem),
            },
            Self::Active(speaking) => match speaking.reader.next().await {
                Some(event) => ResponseProgress::Event(event),
                None => ResponseProgress::StreamLost,
            },
        }
    }
}

/// Starts a response. `known_items` are the socket's remembered items of the response to continue.
///
/// # Errors
/// Returns an error if no response was created.
pub async fn start(
    app: Data<App>,
    caller: SocketCaller,
    mut request: ResponseRequest,
    known_items: Option<Arc<Vec<Value>>>,
) -> V1Result<ActiveResponse> {
    if let Credential::ApiKey(key) = caller.credential {
        app.limits.responses.acquire(key).await?;
    }
    remote_files::fetch(&app, caller.user, "input", &mut request.input).await?;
    let previous_response_id = request.previous_response_id.clone();
    let mut prior_items = None;
    if !request.store {
        request = app
            .responses
            .load_prior_items(caller.user, request, known_items)
            .await?;
        let prior = request
            .prior_items
            .as_ref()
            .map_or(&[][..], |it| it.as_slice());
        prior_items = Some([prior, &request.input].concat());
    }
    match app.responses.create(caller.user, request).await? {
        Created::Streamed(reader) => Ok(ActiveResponse {
            reader,
            previous_response_id,
            prior_items,
        }),
        // A streaming request always creates a streamed response.
        Created::Blocking(_) | Created::Queued(_) => {
            let message = "Internal server error.";
            Err(V1Error::new(500, "internal", message))
        }
    }
}
