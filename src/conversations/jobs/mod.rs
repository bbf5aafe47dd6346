//! Background jobs of conversations: their table, and how much one batch does.

pub mod batch_size;
pub mod deletion;
pub mod job;
pub mod job_view;
