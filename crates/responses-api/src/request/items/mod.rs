//! Modules that validate the items of a request, convert them to the form in which they are stored,
//! and parse stored items.

pub mod attachment;
pub mod call_items;
pub mod content;
pub mod input_items;
pub mod item_view;
