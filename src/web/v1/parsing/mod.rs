//! Receives request bodies of the Responses API, and the files that they name.

pub mod body;
pub mod remote_files;
