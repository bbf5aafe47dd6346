//! Modules that parse the bodies of requests to `/v1/assistants` and `/v1/threads`. The texts and
//! pictures of messages become parts of input items of a response.

pub mod assistant_bodies;
pub mod run_bodies;
pub mod thread_bodies;
pub mod thread_messages;
pub mod thread_tools;
