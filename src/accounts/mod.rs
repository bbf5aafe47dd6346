//! People with accounts, the browsers they are signed in with, and their programs' keys.

pub mod api_key;
pub mod body_pace;
pub mod connections;
pub mod likeness;
pub mod limit;
pub mod limits;
pub mod name_schemas;
pub mod names;
pub mod password;
pub mod register;
pub mod session;
pub mod sockets;
pub mod token;
pub mod user;
pub mod window;
