//! Posts and marks of messages: what is posted, who sees it, the plans of narration and of messages that
//! are out of character, and the checks of a post that need the database.

pub mod greetings;
pub mod narration;
pub mod new_post;
pub mod out_of_character;
pub mod post_audience;
pub mod post_checks;
