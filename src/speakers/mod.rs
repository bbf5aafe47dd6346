//! Modules that select the next speakers of a conversation by the reply order of its space. No I/O.
//!
//! The input is a `selection::SelectionInput` and a `tavern::seeded_random::SeededRandom`, the
//! output choices with their reasons. The entry points are `selector::select_one` and
//! `selector::select_round`; each reply order has its own file. `odds` computes how likely each choice is.

pub mod from_memberships;
pub mod list;
pub mod manual;
pub mod mention;
pub mod natural;
pub mod odds;
pub mod pooled;
pub mod selection;
pub mod selector;
pub mod text_folding;
