//! Plans the slots of a round in the order `director`: the mentioned members, or one slot for which
//! the director chooses.

use crate::runs::scheduling::plan::NewSlot;
use crate::spaces::space::RepliesPerTurn;
use crate::speakers::selection::{SelectionInput, SelectionTrigger};
use crate::speakers::{natural, selector};

/// The reason of a slot as long as it has no speaker.
const UNDECIDED: &str = "director chooses";

/// Returns the slots after a trigger; none if no one can speak. A mentioned member speaks without the
/// director, who chooses among characters only.
pub fn plan(
    replies: RepliesPerTurn,
    trigger: SelectionTrigger,
    input: &SelectionInput,
) -> Vec<NewSlot> {
    let eligible = selector::eligible(trigger, input);
    let mut slots: Vec<NewSlot> = natural::mentioned(input, &eligible)
        .map(NewSlot::from)
        .collect();
    if slots.is_empty() && !natural::characters(&eligible).is_empty() {
        slots.push(undecided());
    }
    if replies == RepliesPerTurn::One || trigger == SelectionTrigger::Generate {
        slots.truncate(1);
    }
    slots
}

/// Returns a slot for which the director chooses the speaker.
pub fn undecided() -> NewSlot {
    NewSlot {
        speaker: None,
        reason: UNDECIDED.to_owned(),
        is_forced: false,
    }
}
