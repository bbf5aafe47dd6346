//! The progress of a round from slot to slot: the turns of characters, which are runs, and those of
//! people, for which the round waits.

pub mod human_turns;
pub mod round_progress;
