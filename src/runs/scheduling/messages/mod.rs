//! Posts and marks of messages: the plans of messages that are out of character, and the checks of a post
//! that need the database.

pub mod out_of_character;
pub mod post_checks;
