//! Modules of the fold, which converts the events of a response task to the response object and its
//! stream of events.
//!
//! **Invariant:** the blocking body, `GET`, the last event and a replay are states of this fold.

pub mod engine_event;
pub mod fold_calls;
pub mod fold_text;
pub mod response_fold;
pub mod speaker_tag;
