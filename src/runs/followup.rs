//! What follows a text when its round has nobody left: the loops in which AI answers AI.

use crate::runs::auto_mode;
use crate::runs::choosing::Said;
use crate::runs::copilot;
use crate::runs::draft::Draft;

/// Asked once for each text of a run that becomes a message, when the text's round (if it had one)
/// has no slot left. `rests`: that round was paused meanwhile, so whatever follows waits for a
/// person.
///
/// Nothing follows where something newer is planned, or a newer round goes on or rests.
pub fn after_text(d: &mut Draft, said: &Said, rests: bool) {
    if d.round.is_some() || d.queued.is_some() {
        return;
    }
    if !copilot::follow_up(d, said, rests) {
        auto_mode::follow_up(d, said, rests);
    }
}
