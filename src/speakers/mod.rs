//! Selects the next speakers of a conversation by its reply order. Pure.
//!
//! Pure: a `selection::SelectionInput` and a `seeded_random::SeededRandom` go in, choices with
//! their reasons come out. The entry points are `selector::select_one` and
//! `selector::select_round`; each reply order has its own file.

pub mod from_memberships;
pub mod list;
pub mod manual;
pub mod mention;
pub mod natural;
pub mod pooled;
pub mod selection;
pub mod selector;
pub mod text_folding;
