//! The end of an execution: its result, and how that is committed.

pub mod execution_result;
pub mod reply_scripts;
pub mod run_end;
pub mod sent_record;
