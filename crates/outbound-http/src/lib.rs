//! The only HTTP client for outbound calls.
//!
//! A [`client::OutboundClient`] resolves a name itself, checks every address against
//! [`address_policy`], and connects to the address that it checked.

pub mod address_policy;
pub mod client;
pub mod error;
pub mod private_access;
