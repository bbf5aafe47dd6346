//! What a space allows for posts: the personas under which members post, and how often they post.

pub mod persona_use;
pub mod slow_mode;
