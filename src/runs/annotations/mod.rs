//! Operations on what people attach to messages. They change no schedule.

pub mod reactions;
