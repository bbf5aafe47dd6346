//! The contract of all providers: whichever API is spoken, the same things happen.

mod calls;
mod errors;
mod kinds;
mod lists;
mod streams;
mod tools;
