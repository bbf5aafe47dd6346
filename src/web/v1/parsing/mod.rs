//! Modules that read the request bodies of the Responses API (`body`), unpack compressed ones
//! (`compressed_body`), and fetch the files that the
//! requests name by URL (`remote_files`).

pub mod body;
pub mod compressed_body;
pub mod remote_files;
