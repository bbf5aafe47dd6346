//! Corpora: everything that strangers are known to send, put wherever it can be put.
//!
//! Doors are taken from the list of the server, and what a door takes is found out by asking it.

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
