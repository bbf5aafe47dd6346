//! Modules that read request bodies (`body`), unpack compressed ones (`compressed_body`), and fetch the files
//! that requests name by URL (`remote_files`).

pub mod body;
pub mod compressed_body;
pub mod remote_files;
