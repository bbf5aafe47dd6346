//! Modules that read the request bodies of the Responses API (`body`), and fetch the files that the
//! requests name by URL (`remote_files`).

pub mod body;
pub mod remote_files;
