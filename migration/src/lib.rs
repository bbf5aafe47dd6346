//! The tables of Troupe, one step a file, forward and back on SQLite and PostgreSQL.
