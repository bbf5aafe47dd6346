//! The pages in `docs/` say what is so: where a page is a table of states, events or rules, the
//! table is read and held to the program.

mod lifecycle;
mod realtime;
mod rules;
