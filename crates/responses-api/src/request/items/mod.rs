//! The items of a request, and those that are read back from the database.

pub mod attachment;
pub mod call_items;
pub mod content;
pub mod item;
pub mod item_view;
