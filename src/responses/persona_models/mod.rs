//! Lets clients of `/v1` request characters and spaces as models.

pub mod model_names;
pub mod speaker_prompt;
pub mod speaker_queue;
pub mod speaker_selection;
