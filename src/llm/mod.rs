//! Models: what they are asked, what they stream back, and who can be asked.
//!
//! A [`provider::Provider`] turns a [`request::Request`] into a stream of [`delta::Delta`]s. It
//! neither retries nor watches the clock: both belong to `generation/`, which drives it.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `request`, `delta`, `error` | the words spoken with a model |
//! | `provider` | the trait |
//! | `openai_compatible`, `scripted` | those who implement it |
//! | `chat_body`, `chat_chunk`, `chat_error` | the wire format of `openai_compatible` |
//! | `catalog` | which models an endpoint has, and whether it answers |
//! | `sse` | the event-stream reader |
//! | `egress`, `secret` | the way out, and the keys that may go there |
//! | `registry` | settings to provider |
//! | `tokens` | how long a text is for a model |

pub mod delta;
pub mod error;
pub mod provider;
pub mod request;
pub mod secret;
pub mod sse;
pub mod tokens;
