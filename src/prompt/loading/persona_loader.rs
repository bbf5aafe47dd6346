//! Loads the personas of a prompt: those under which messages of its history were posted, the
//! descriptions of people who play none, and the persona of its user.
//!
//! **Invariant:** there is at most one query for descriptions, and at most [`MAX_SECTIONS`] are read,
//! however many personas the people have.

use std::collections::HashMap;
use std::sync::Arc;

use base::ids::{MembershipId, MessageId, PersonaId};
use sea_orm::{ConnectionTrait, DbErr};
use tavern::personas::persona_placement::PersonaPlacement;

use crate::conversations::message::MessageRole;
use crate::personas::persona;
use crate::prompt::context::{PromptPersona, PromptUser};
use crate::prompt::loading::history_query::HistoryMessage;
use crate::spaces::membership::{MembershipKind, Model};
use crate::spaces::posts::persona_use;

/// At most this many personas are in a prompt: those that spoke last.
const MAX_SECTIONS: usize = 50;

/// A person with the persona under which they spoke.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SpokenPersona {
    member: MembershipId,
    persona: Option<PersonaId>,
    /// The persona's name in their newest message under it.
    name: Option<String>,
    last_seq: i64,
}

/// Returns the user of a prompt and the personas in it, ordered by the position of their members, then
/// by name, with their present descriptions and positions. With the user's membership: the speaker, and the
/// message that it replies to.
pub(super) async fn load(
    db: &impl ConnectionTrait,
    memberships: &[Model],
    history: &[Arc<HistoryMessage>],
    (user, answers): (Option<&Model>, (MembershipId, Option<MessageId>)),
) -> Result<(PromptUser, Vec<PromptPersona>), DbErr> {
    let mut spoken = newest_by_persona(history);
    spoken.truncate(MAX_SECTIONS);
    let message = find_user_message(history, answers, user);
    let Some(user) = user else {
        return Ok((to_prompt_user(None), Vec::new()));
    };
    let of_user = match message {
        Some(message) => SpokenPersona::of(message),
        None => {
            let next = persona_use::find_for_member(db, user).await?;
            SpokenPersona {
                member: user.id,
                persona: next.as_ref().map(|it| it.id),
                name: next.map(|it| it.name),
                last_seq: 0,
            }
        }
    };
    if !spoken.iter().any(|it| it.is_same(&of_user)) {
        spoken.push(of_user.clone());
    }
    let mut ids: Vec<PersonaId> = spoken.iter().filter_map(|it| it.persona).collect();
    ids.sort_unstable();
    ids.dedup();
    let texts = persona::list_descriptions(db, &ids).await?;
    let texts = texts.into_iter().map(|(id, text, at)| (id, (text, at)));
    let texts: HashMap<PersonaId, (String, PersonaPlacement)> = texts.collect();
    let text_of = |it: &SpokenPersona, member: &Model| match (it.persona, &it.name) {
        (Some(id), _) => texts.get(&id).cloned().unwrap_or_default(),
        (None, Some(_)) => Default::default(),
        (None, None) => (
            member.persona.clone().unwrap_or_default(),
            Default::default(),
        ),
    };
    let mut sections = Vec::new();
    for it in &spoken {
        let Some(member) = memberships.iter().find(|member| member.id == it.member) else {
            continue;
        };
        let (text, placement) = text_of(it, member);
        if member.kind == MembershipKind::Human && !text.trim().is_empty() {
            let section = PromptPersona {
                name: it.name_of(member),
                text,
                placement,
                is_user: it.is_same(&of_user),
                last_seq: it.last_seq,
            };
            sections.push((member.position, section));
        }
    }
    sections.sort_by(|(one, a), (other, b)| (one, &a.name).cmp(&(other, &b.name)));
    let (persona, placement) = text_of(&of_user, user);
    let prompt_user = PromptUser {
        name: of_user.name_of(user),
        persona,
        placement,
    };
    Ok((prompt_user, sections.into_iter().map(|it| it.1).collect()))
}

/// Returns the message that shows as whom the user speaks: the one replied to if they wrote it, else
/// their newest one. `None` if the prompt is for a text of their own.
fn find_user_message<'a>(
    history: &'a [Arc<HistoryMessage>],
    (speaker, reply_to): (MembershipId, Option<MessageId>),
    user: Option<&Model>,
) -> Option<&'a HistoryMessage> {
    let user = user.filter(|it| it.id != speaker)?;
    let mut own = history
        .iter()
        .rev()
        .filter(|it| it.space_membership_id == user.id);
    let newest = own.clone().next();
    let answered = own.find(|it| Some(it.id) == reply_to);
    answered.or(newest).map(Arc::as_ref)
}

/// Returns a member as the user of a prompt, without a persona; a user without a name if there is none.
pub(super) fn to_prompt_user(membership: Option<&Model>) -> PromptUser {
    membership.map_or_else(
        || PromptUser {
            name: "User".to_owned(),
            ..PromptUser::default()
        },
        |it| PromptUser {
            name: it.cached_display_name.clone(),
            persona: it.persona.clone().unwrap_or_default(),
            placement: PersonaPlacement::default(),
        },
    )
}

impl SpokenPersona {
    fn of(message: &HistoryMessage) -> Self {
        Self {
            member: message.space_membership_id,
            persona: message.persona_id,
            name: message.persona_name.clone(),
            last_seq: message.seq,
        }
    }

    /// Returns whether both are the same persona of the same person; it may have been renamed.
    fn is_same(&self, other: &Self) -> bool {
        let has_same_name = self.persona.is_some() || self.name == other.name;
        self.member == other.member && self.persona == other.persona && has_same_name
    }

    fn name_of(&self, member: &Model) -> String {
        let own = || member.cached_display_name.clone();
        self.name.clone().unwrap_or_else(own)
    }
}

/// Returns the newest message of each persona of each person, the newest first.
fn newest_by_persona(history: &[Arc<HistoryMessage>]) -> Vec<SpokenPersona> {
    let of_people = history.iter().rev();
    let of_people = of_people.filter(|it| it.role == MessageRole::User);
    let mut spoken: Vec<SpokenPersona> = Vec::new();
    for message in of_people {
        let it = SpokenPersona::of(message);
        if spoken.len() < MAX_SECTIONS && !spoken.iter().any(|known| known.is_same(&it)) {
            spoken.push(it);
        }
    }
    spoken
}
