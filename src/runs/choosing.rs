//! Whom a message wakes, and whom a button does: the conversation as a scene for `speakers/`.

use crate::ids::MembershipId;
use crate::runs::draft::Draft;
use crate::spaces::space::RepliesPerTurn;
use crate::speakers::seeded_random::SeededRandom;
use crate::speakers::selection::SelectionInput;
use crate::speakers::selection::SpeakerChoice;
use crate::speakers::selector;
use crate::speakers::selector::SelectionTrigger;

/// A message that may wake somebody.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    pub author: MembershipId,
    pub text: &'a str,
    /// Seats named by id beside the text.
    pub mentions: &'a [MembershipId],
}

/// Who answers a message of role user, one after the other.
pub fn after_human(d: &Draft, said: &Said) -> Vec<SpeakerChoice> {
    let mut scene = scene(d, said);
    // The message begins a new epoch: nobody has spoken in it.
    scene.speakers_since_last_user_message.clear();
    several(d, SelectionTrigger::Human, &scene)
}

/// Who answers the message of a character, in auto mode.
pub fn after_ai(d: &Draft, said: &Said) -> Vec<SpeakerChoice> {
    let mut scene = scene(d, said);
    scene.last_speaker = Some(said.author);
    scene.speakers_since_last_user_message.insert(said.author);
    several(d, SelectionTrigger::Auto, &scene)
}

/// Whom a button wakes that does not say who.
pub fn for_generate(d: &Draft) -> Option<SpeakerChoice> {
    let tail = d.s.tail.as_ref();
    let scene = SelectionInput {
        newest_author: tail.map(|it| it.space_membership_id),
        newest_text: tail.map(|it| it.content.clone()).unwrap_or_default(),
        ..of_the_conversation(d)
    };
    one(d, SelectionTrigger::Generate, &scene)
}

fn several(d: &Draft, trigger: SelectionTrigger, scene: &SelectionInput) -> Vec<SpeakerChoice> {
    let order = d.s.space.reply_order;
    match d.s.space.replies_per_turn {
        RepliesPerTurn::One => one(d, trigger, scene).into_iter().collect(),
        RepliesPerTurn::Activated => selector::select_round(
            order,
            trigger,
            scene,
            &mut SeededRandom::from_seed(d.fresh.seed),
        ),
    }
}

fn one(d: &Draft, trigger: SelectionTrigger, scene: &SelectionInput) -> Option<SpeakerChoice> {
    let mut dice = SeededRandom::from_seed(d.fresh.seed);
    selector::select_one(d.s.space.reply_order, trigger, scene, &mut dice)
}

fn scene(d: &Draft, said: &Said) -> SelectionInput {
    SelectionInput {
        newest_author: Some(said.author),
        newest_text: said.text.to_owned(),
        mentions: said.mentions.to_vec(),
        ..of_the_conversation(d)
    }
}

fn of_the_conversation(d: &Draft) -> SelectionInput {
    SelectionInput {
        candidates: d.s.candidates(),
        last_speaker: d.s.last_speaker,
        speakers_since_last_user_message: d.s.spoken_in_epoch.clone(),
        allow_self_responses: d.s.space.allow_self_responses,
        ..SelectionInput::default()
    }
}
