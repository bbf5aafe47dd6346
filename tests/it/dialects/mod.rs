//! The contract of all providers: every API behaves in the same way.

mod calls;
mod errors;
mod hundred_turns;
mod kinds;
mod lists;
mod refusals;
mod streams;
mod strict_apis;
mod tools;
