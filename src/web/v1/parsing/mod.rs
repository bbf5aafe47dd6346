//! Parses and validates request bodies of the Responses API.

pub mod attachments;
pub mod body;
pub mod call_items;
pub mod fields;
pub mod format;
pub mod items;
pub mod mcp;
pub mod remote_files;
pub mod request;
pub mod tools;

#[cfg(test)]
mod snapshot_tests;
