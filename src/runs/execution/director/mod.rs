//! Lets a model choose the speaker of a run: the request, the answer, the call and the step that stores
//! the choice.

pub mod answer;
pub mod call;
pub mod request;
pub mod speaker_choice;
