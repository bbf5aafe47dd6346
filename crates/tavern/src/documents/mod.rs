//! Modules that read untrusted files of text: JSON and YAML within the limits of a card, invalid
//! UTF-8, and line endings.

pub mod decoding;
pub mod document;
pub mod document_error;
pub mod limits;
pub mod line_ends;
pub mod risu_binary;
pub mod yaml;
pub mod yaml_scalars;
