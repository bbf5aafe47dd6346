//! Checks the pages in `docs/` against the program: tables of states, events and rules are parsed
//! and compared.

mod lifecycle;
mod links;
mod realtime;
mod rules;
