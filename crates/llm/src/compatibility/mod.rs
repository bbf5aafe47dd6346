//! What endpoints and models accept beyond the common rules of their API, as set by an admin, known by
//! name, or learned from a refusal.

pub mod backend;
pub mod context_window;
pub mod extra_body;
pub mod name_prefix;
pub mod refusals;
pub mod request_headers;
pub mod role_handling;
pub mod token_factors;
