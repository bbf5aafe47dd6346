//! The socket through its real door: what one hears, and who may.

pub mod door;
pub mod frames;
pub mod hearing;
pub mod people;
pub mod refused_again;
pub mod rights;
pub mod slow;
pub mod stage;
pub mod stream;
