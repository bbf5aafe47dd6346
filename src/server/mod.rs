//! The server: mounts the doors, serves the client, closes in order; and the other commands.

pub mod check;
pub mod client_files;
pub mod commands;
pub mod endpoints;
pub mod openapi;
pub mod serve;
