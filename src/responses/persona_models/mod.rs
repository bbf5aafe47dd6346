//! Characters and spaces as models of the API.

pub mod model_names;
pub mod speaker_prompt;
pub mod speaker_queue;
pub mod speaker_selection;
