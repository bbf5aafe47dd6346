//! Reply order `director`: a model chooses who speaks. A plan leaves its slot without a speaker; the
//! executor of the run asks the model, and one more step gives the run and the slot their speaker.

pub mod candidates;
pub mod choice;
pub mod slots;
pub mod speaker_chosen;
