//! The HTTP server (endpoints, client files, shutdown in order) and the other commands of the
//! binary.

pub mod check;
pub mod client_files;
pub mod commands;
pub mod endpoints;
pub mod openapi;
pub mod serve;
