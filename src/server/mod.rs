//! The HTTP server: mounts the endpoints, serves the client and shuts down in order. Also the other
//! commands of the binary.

pub mod check;
pub mod client_files;
pub mod commands;
pub mod endpoints;
pub mod openapi;
pub mod serve;
