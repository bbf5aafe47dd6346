//! Defines `Projection`, the result of the events of a response task: a response, a chat completion, or
//! a run of a thread.

use base::clock::Timestamp;
use responses_api::event::EncodedEvent;
use responses_api::fold::chat_fold::ChatFold;
use responses_api::fold::engine_event::EngineEvent;
use responses_api::fold::response_fold::Fold;
use responses_api::item::OutputItem;
use responses_api::response::{Response, ResponseState};
use responses_api::threads::run_fold::RunFold;

use crate::responses::telemetry::ended_call::CallCounts;

/// The fold of one task.
#[derive(Clone, Debug)]
pub enum Projection {
    Response(Box<Fold>),
    Chat(Box<ChatFold>),
    Run(Box<RunFold>),
}

impl Projection {
    /// Sets the time of the next events, for a run.
    pub fn set_now(&mut self, now: Timestamp) {
        if let Self::Run(fold) = self {
            fold.set_now(now);
        }
    }

    /// Applies an event and returns the stream events for it.
    pub fn apply(&mut self, event: EngineEvent) -> Vec<EncodedEvent> {
        match self {
            Self::Response(fold) => fold.apply(event),
            Self::Chat(fold) => fold.apply(event),
            Self::Run(fold) => fold.apply(event),
        }
    }

    /// Returns the items to store; only a response has some.
    pub fn items(&self) -> &[OutputItem] {
        match self {
            Self::Response(fold) => fold.items(),
            Self::Chat(_) | Self::Run(_) => &[],
        }
    }

    /// Returns the present state.
    pub fn state(&self) -> &ResponseState {
        match self {
            Self::Response(fold) => fold.state(),
            Self::Chat(fold) => fold.state(),
            Self::Run(fold) => fold.state(),
        }
    }

    /// Returns whether any output was emitted.
    pub fn has_output(&self) -> bool {
        match self {
            Self::Response(fold) => fold.has_output(),
            Self::Chat(fold) => fold.has_output(),
            Self::Run(fold) => fold.has_output(),
        }
    }

    /// Returns whether the task has ended what it executes; a run may wait for its client instead.
    pub fn is_over(&self) -> bool {
        match self {
            Self::Response(_) | Self::Chat(_) => true,
            Self::Run(fold) => fold.run_state().status.is_final(),
        }
    }

    /// Returns the calls of a run over all of its parts; `None` for what one task executes.
    pub fn call_counts(&self) -> Option<CallCounts> {
        let Self::Run(fold) = self else {
            return None;
        };
        let n_tool_calls: usize = fold.steps().iter().map(|it| it.calls().len()).sum();
        Some(CallCounts {
            n_model_calls: fold.run_state().n_model_calls,
            n_tool_calls: u32::try_from(n_tool_calls).unwrap_or(u32::MAX),
        })
    }

    /// Returns the response object, or `None` if the task creates no response.
    pub fn response(&self) -> Option<Box<Response>> {
        match self {
            Self::Response(fold) => Some(Box::new(fold.document())),
            Self::Chat(_) | Self::Run(_) => None,
        }
    }

    /// Returns the fold of a chat completion, or `None` if the task completes no chat.
    pub fn into_chat(self) -> Option<ChatFold> {
        match self {
            Self::Response(_) | Self::Run(_) => None,
            Self::Chat(fold) => Some(*fold),
        }
    }
}

impl From<Fold> for Projection {
    fn from(fold: Fold) -> Self {
        Self::Response(Box::new(fold))
    }
}
