//! Background jobs on conversations and spaces: their table, their JSON form, the size of their
//! batches, and deletion.

pub mod batch_size;
pub mod deletion;
pub mod job;
pub mod job_view;
