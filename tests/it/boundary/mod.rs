//! The wall towards browsers and whoever speaks HTTP: names, addresses, headers, guesses, secrets.

mod addresses;
mod caches;
mod connections;
mod guesses;
mod headers;
mod hosts;
mod rooms;
mod safe_methods;
mod secrets;
mod slow_bodies;
mod wire;
