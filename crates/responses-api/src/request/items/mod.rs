//! Validates the items of a request, converts them to the form in which they are stored, and parses
//! stored items.

pub mod attachment;
pub mod call_items;
pub mod content;
pub mod input_items;
pub mod item_view;
