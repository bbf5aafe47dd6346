//! Reads the request bodies of the Responses API, and fetches the files that they name by URL.

pub mod body;
pub mod remote_files;
