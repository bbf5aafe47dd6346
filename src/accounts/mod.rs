//! People with accounts, the browsers they are signed in with, and their programs' keys.

pub mod api_key;
pub mod session;
pub mod user;
