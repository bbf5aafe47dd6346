//! Security tests of the HTTP boundary: host names, addresses, headers, guessing and secrets.

mod addresses;
mod caches;
mod connections;
mod headers;
mod hosts;
mod invite_guessing;
mod raw_protocol;
mod safe_methods;
mod secrets;
mod slow_bodies;
mod space_isolation;
