//! The socket through its real door: what one hears, and who may.

mod door;
mod frames;
mod hearing;
mod rights;
mod slow;
mod stage;
mod stream;
