//! What all doors share: who calls, from where and under which name, how a body is read, how an error looks, how lists are paged, how a socket is held.

pub mod auth;
pub mod carry;
pub mod document;
pub mod door;
pub mod encoded;
pub mod error;
pub mod frame;
pub mod gauge;
pub mod holder;
pub mod host;
pub mod if_match;
pub mod json;
pub mod large_page;
pub mod meter;
pub mod origin;
pub mod outcomes;
pub mod page;
pub mod peer;
pub mod pulse;
pub mod request_body;
pub mod schemas;
pub mod seat;
pub mod typed;
pub mod upload;
pub mod wire;
