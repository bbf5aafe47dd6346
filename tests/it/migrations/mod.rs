//! The migrations, on both databases.

mod existing_rows;
mod schema;
