//! The way out: nothing that a base URL can say leads a call into the network around the server.

mod address_fields;
mod addresses;
mod blocked_addresses;
mod keys;
mod mcp;
mod member_addresses;
mod member_calls;
mod rebinding;
