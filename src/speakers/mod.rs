//! Who speaks next (SpeakerSelector).
//!
//! Pure: the facts come in as a `candidates::Scene`, chance as `dice::Dice`, and a choice with its
//! reason goes out. `selector::select` is the way in; each reply order has a file of its own.

pub mod from_memberships;
pub mod list;
pub mod manual;
pub mod mention;
pub mod natural;
pub mod pooled;
pub mod seeded_random;
pub mod selection;
pub mod selector;
pub mod text_folding;
