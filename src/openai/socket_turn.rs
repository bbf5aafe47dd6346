//! The turn of a socket: none, one that is being begun, or one that speaks.

use crate::app::App;
use crate::http::authentication::Credential;
use crate::http::socket_caller::SocketCaller;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::far_files;
use crate::responses::desk::Begun;
use crate::responses::fold::Event;
use crate::responses::pipe::Reader;
use crate::responses::spec::Spec;
use actix_web::web::Data;
use futures::future::LocalBoxFuture;
use serde_json::Value;
use std::sync::Arc;

/// At most one at a time.
pub enum Turn {
    None,
    Beginning {
        previous: Option<String>,
        begin: LocalBoxFuture<'static, Answer<Speaking>>,
    },
    Speaking(Speaking),
}

/// A turn that has begun. Dropping it cancels it.
pub struct Speaking {
    reader: Reader,
    pub previous: Option<String>,
    /// What was said before the model; `None` of what is stored, and found there again.
    pub before: Option<Vec<Value>>,
}

/// What happens next in a turn.
pub enum Step {
    Begun(Speaking),
    /// It was not begun. First, what it would have gone on from.
    Refused(Option<String>, Problem),
    Said(Event),
    /// There is no more, and no end.
    Cut,
}

impl Turn {
    /// Whether none is under way.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// What happens next; of no turn nothing ever does. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Step {
        match self {
            Self::None => std::future::pending().await,
            Self::Beginning { previous, begin } => match begin.await {
                Ok(speaking) => Step::Begun(speaking),
                Err(problem) => Step::Refused(previous.take(), problem),
            },
            Self::Speaking(speaking) => match speaking.reader.next().await {
                Some(event) => Step::Said(event),
                None => Step::Cut,
            },
        }
    }
}

/// Begins a turn. `known`: what the socket remembers of what it goes on from.
///
/// # Errors
/// Nothing was begun.
pub async fn begin(
    app: Data<App>,
    caller: SocketCaller,
    mut spec: Spec,
    known: Option<Arc<Vec<Value>>>,
) -> Answer<Speaking> {
    if let Credential::ApiKey(key) = caller.credential {
        app.limits.responses.acquire(key).await?;
    }
    far_files::fetch(&app, caller.user, "input", &mut spec.input).await?;
    let previous = spec.previous.clone();
    let mut before = None;
    if !spec.store {
        spec = app.responses.recall(caller.user, spec, known).await?;
        let prior = spec.prior.as_ref().map_or(&[][..], |it| it.as_slice());
        before = Some([prior, &spec.input].concat());
    }
    match app.responses.create(caller.user, spec).await? {
        Begun::Streamed(reader) => Ok(Speaking {
            reader,
            previous,
            before,
        }),
        // What is asked for as a stream begins as one.
        Begun::Whole(_) | Begun::Queued(_) => {
            let message = "Something went wrong on the server.";
            Err(Problem::new(500, "internal", message))
        }
    }
}
