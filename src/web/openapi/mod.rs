//! The API document.

pub mod common_responses;
pub mod document;
pub mod endpoint;
pub mod schemas;
