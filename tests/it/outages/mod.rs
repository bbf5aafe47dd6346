//! What a whole server does while something it stands on gives way: its database is away, or has no
//! connection left for it, or the machine has no time for it.

pub mod database_away;
pub mod no_connection_left;
pub mod starved;
