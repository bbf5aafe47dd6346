//! Outbound requests: no base URL can lead a call into the network around the server.

mod address_fields;
mod addresses;
mod blocked_addresses;
mod keys;
mod mcp;
mod member_addresses;
mod member_calls;
mod rebinding;
