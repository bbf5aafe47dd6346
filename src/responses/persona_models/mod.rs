//! Modules that let clients of `/v1` request characters and spaces as models: the names of these
//! models, and the speakers and prompts of their responses.

pub mod model_names;
pub mod space_tools;
pub mod speaker_prompt;
pub mod speaker_queue;
pub mod speaker_selection;
