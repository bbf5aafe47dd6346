//! Rolling summaries of conversations, which replace the messages before the history in a prompt.
//!
//! A part ([`summary::SummaryLevel::Part`]) summarizes up to a few dozen messages; the running
//! summary covers all messages up to its last part, and is continued when parts are added. A run whose
//! history nearly fills its share of the prompt requests them ([`summary_task`]); [`summary_plan`] is
//! the pure core that decides what is missing, and a background task requests it from a model.
//!
//! **Invariant:** each change is a new version. The version in use is the one that is not superseded;
//! at most one is in use for a level and a first message.

pub mod summary;
pub mod summary_branching;
pub mod summary_changes;
pub mod summary_deletion;
pub mod summary_edit;
pub mod summary_input;
pub mod summary_plan;
pub mod summary_request;
pub mod summary_store;
pub mod summary_task;
