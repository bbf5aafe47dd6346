//! Models: what they are asked, what they stream back, and who can be asked.
//!
//! A [`provider::Provider`] turns a [`request::Request`] into a stream of [`delta::Delta`]s. It
//! neither retries nor limits the time: both belong to `generation/`, which drives it.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `request`, `delta`, `error` | the words spoken with a model |
//! | `provider` | the trait |
//! | `openai_compatible` | the provider for every compatible endpoint |
//! | `chat_body`, `chat_stream`, `chat_chunk`, `chat_error` | its wire format |
//! | `sse` | the event-stream reader |
//! | `scripted`, `scripted_voices` | the built-in demo model |
//! | `registry` | from settings to a provider |
//! | `catalog` | which models an endpoint has, and whether it answers |
//! | `egress`, `address`, `secret` | the way out, where it may lead, and the keys that may go there |
//! | `tokens` | how long a text is for a model |

pub mod address;
pub mod catalog;
pub mod chat_body;
pub mod chat_chunk;
pub mod chat_error;
pub mod chat_stream;
pub mod delta;
pub mod egress;
pub mod error;
pub mod openai_compatible;
pub mod provider;
pub mod registry;
pub mod request;
pub mod scripted;
pub mod scripted_voices;
pub mod secret;
pub mod sse;
pub mod tokens;
