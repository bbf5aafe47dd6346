//! What a space allows for posts: the personas under which members post, how often they post, and since
//! when a character heard them.

pub mod heard_messages;
pub mod persona_use;
pub mod slow_mode;
