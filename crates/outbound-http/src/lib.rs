//! An HTTP client that checks every IP address before it connects.
//!
#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! | --- | --- |
//! | [`client`] | the client and its resolver, and the validation of URLs |
//! | [`address_policy`] | which addresses are public, private or forbidden |
//! | [`private_access`] | which private hosts a client may call |
//! | [`error`] | why a call cannot be made |

pub mod address_policy;
pub mod client;
pub mod error;
pub mod private_access;
