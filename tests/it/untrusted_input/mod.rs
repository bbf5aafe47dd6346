//! Tests with untrusted input: corpora of known attack strings, sent in every field that accepts a
//! text.
//!
//! The endpoints come from the list of the server, and their fields are probed by calling them.

mod aborts;
mod attacks;
mod bodies;
mod encodings;
mod endpoint_fields;
mod fields;
mod frames;
mod headers;
mod http_connection;
mod injection;
mod installation;
mod isolation;
mod json;
mod lossless;
mod prompts;
mod queries;
mod resource_limits;
mod sign_in;
mod sockets;
mod strings;
mod ws_peer;
