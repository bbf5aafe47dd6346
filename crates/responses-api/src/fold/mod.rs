//! Modules of the folds, which convert the events of a response task to the response object and its
//! stream of events, or to a chat completion and its chunks.
//!
//! **Invariant:** the blocking body, `GET`, the last event and a replay are states of the same fold.

pub mod chat_choices;
pub mod chat_fold;
pub mod chat_objects;
pub mod engine_event;
pub mod finished_events;
pub mod fold_calls;
pub mod fold_text;
pub mod response_fold;
pub mod speaker_tag;
