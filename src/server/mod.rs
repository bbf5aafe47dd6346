//! Runs the HTTP server (endpoints, client files, API document, ordered shutdown), and implements
//! the other commands of the binary: check, migrate, and reset a password.

pub mod check;
pub mod client_files;
pub mod commands;
pub mod endpoints;
pub mod openapi;
pub mod serve;
