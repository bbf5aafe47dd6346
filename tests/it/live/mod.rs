//! Tests of the WebSocket API: events, permissions and limits.

pub mod continue_stream;
pub mod fixture;
pub mod frames;
pub mod memory_events;
pub mod presence;
pub mod protocol_2;
pub mod re_authorization;
pub mod rights;
pub mod slow;
pub mod stream;
pub mod subscriptions;
pub mod upgrade;
