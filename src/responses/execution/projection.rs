//! Defines `Projection`, the result of the events of a response task: a response or a chat completion.

use responses_api::event::EncodedEvent;
use responses_api::fold::chat_fold::ChatFold;
use responses_api::fold::engine_event::EngineEvent;
use responses_api::fold::response_fold::Fold;
use responses_api::item::OutputItem;
use responses_api::response::{Response, ResponseState};

/// The fold of one task.
#[derive(Clone, Debug)]
pub enum Projection {
    Response(Box<Fold>),
    Chat(Box<ChatFold>),
}

impl Projection {
    /// Applies an event and returns the stream events for it.
    pub fn apply(&mut self, event: EngineEvent) -> Vec<EncodedEvent> {
        match self {
            Self::Response(fold) => fold.apply(event),
            Self::Chat(fold) => fold.apply(event),
        }
    }

    /// Returns the items to store; a chat completion stores nothing.
    pub fn items(&self) -> &[OutputItem] {
        match self {
            Self::Response(fold) => fold.items(),
            Self::Chat(_) => &[],
        }
    }

    /// Returns the present state.
    pub fn state(&self) -> &ResponseState {
        match self {
            Self::Response(fold) => fold.state(),
            Self::Chat(fold) => fold.state(),
        }
    }

    /// Returns whether any output was emitted.
    pub fn has_output(&self) -> bool {
        match self {
            Self::Response(fold) => fold.has_output(),
            Self::Chat(fold) => fold.has_output(),
        }
    }

    /// Returns the response object, or `None` if the task completes a chat.
    pub fn response(&self) -> Option<Box<Response>> {
        match self {
            Self::Response(fold) => Some(Box::new(fold.document())),
            Self::Chat(_) => None,
        }
    }

    /// Returns the fold of a chat completion, or `None` if the task creates a response.
    pub fn into_chat(self) -> Option<ChatFold> {
        match self {
            Self::Response(_) => None,
            Self::Chat(fold) => Some(*fold),
        }
    }
}

impl From<Fold> for Projection {
    fn from(fold: Fold) -> Self {
        Self::Response(Box::new(fold))
    }
}
