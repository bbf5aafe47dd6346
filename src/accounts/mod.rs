//! User accounts: their names, passwords, browser sessions and API keys.

pub mod api_key;
pub mod confusable_names;
pub mod credential;
pub mod name_schemas;
pub mod password;
pub mod secret_token;
pub mod session;
pub mod user;
pub mod user_directory;
pub mod username_password;
