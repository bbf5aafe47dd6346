//! Who receives an event about something with an audience, and for which viewer its document is made.

use std::collections::{BTreeMap, BTreeSet};

use base::ids::{ConversationId, MembershipId};
use realtime::envelope::{Envelope, Event, Receivers};
use realtime::hub::Hub;
use realtime::topic::Topic;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message;
use crate::conversations::message::MessageView;
use crate::runs::events::{MessageEvent, RevAdvanced};

/// Receivers that see the same, and one viewer of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverGroup {
    pub receivers: Receivers,
    pub viewer: Viewer,
}

/// Returns the receivers of what only this audience sees.
pub fn of(audience: Option<&Audience>) -> Receivers {
    audience.map_or(Receivers::Everyone, |it| {
        Receivers::Only(it.members().into())
    })
}

/// Groups the subscribers of a conversation by which of these audiences they belong to; each
/// subscriber is in exactly one group. One group of everyone if there are no audiences.
pub fn group<'a>(audiences: impl IntoIterator<Item = Option<&'a Audience>>) -> Vec<ReceiverGroup> {
    let audiences: Vec<&Audience> = audiences.into_iter().flatten().collect();
    let named: BTreeSet<MembershipId> = audiences
        .iter()
        .flat_map(|it| it.members())
        .copied()
        .collect();
    if named.is_empty() {
        return vec![ReceiverGroup {
            receivers: Receivers::Everyone,
            viewer: Viewer::Outsider,
        }];
    }
    let mut by_audiences: BTreeMap<Vec<bool>, Vec<MembershipId>> = BTreeMap::new();
    for member in &named {
        let belongs_to = audiences.iter().map(|it| it.contains(*member)).collect();
        by_audiences.entry(belongs_to).or_default().push(*member);
    }
    let inside = by_audiences.into_values().filter_map(|members| {
        Some(ReceiverGroup {
            viewer: Viewer::Member(*members.first()?),
            receivers: Receivers::Only(members.into()),
        })
    });
    let outside = ReceiverGroup {
        receivers: Receivers::Except(named.into_iter().collect()),
        viewer: Viewer::Outsider,
    };
    inside.chain([outside]).collect()
}

/// Publishes a durable event of a conversation for an audience, and to all others only that `rev` has
/// advanced.
pub fn publish_private(
    hub: &Hub,
    conversation: ConversationId,
    (event, rev): (&impl Event, i64),
    audience: Option<&Audience>,
) {
    let topic = Topic::Conversation(conversation);
    hub.publish(Envelope {
        receivers: of(audience),
        ..Envelope::durable(topic, event, rev)
    });
    if let Some(audience) = audience {
        let others = Receivers::Except(audience.members().into());
        publish_rev(hub, conversation, rev, others);
    }
}

/// Publishes a message to those who see it, and to all others that `rev` has advanced. `quoted` is the
/// audience of the message that it answers: a reply to a whisper may be for more people than the whisper.
pub fn publish_message(
    hub: &Hub,
    (row, quoted): (&message::Model, Option<&Audience>),
    is_new: bool,
    view: impl Fn(Viewer) -> MessageView,
) {
    let (conversation_id, rev) = (row.conversation_id, row.rev);
    let audience = row.audience.as_ref();
    for ReceiverGroup { receivers, viewer } in group([audience, quoted]) {
        if !viewer.sees(audience) {
            publish_rev(hub, conversation_id, rev, receivers);
            continue;
        }
        let event = MessageEvent {
            is_new,
            conversation_id,
            rev,
            message: view(viewer),
        };
        let topic = Topic::Conversation(conversation_id);
        hub.publish(Envelope {
            receivers,
            ..Envelope::durable(topic, &event, rev)
        });
    }
}

/// Publishes that `rev` has advanced, and nothing else.
pub fn publish_rev(hub: &Hub, conversation_id: ConversationId, rev: i64, receivers: Receivers) {
    let event = RevAdvanced {
        conversation_id,
        rev,
    };
    let topic = Topic::Conversation(conversation_id);
    hub.publish(Envelope {
        receivers,
        ..Envelope::durable(topic, &event, rev)
    });
}

#[cfg(test)]
mod tests {
    use base::ids::MembershipId;
    use realtime::envelope::Receivers;

    use super::group;
    use crate::conversations::audience::message_audience::Audience;

    fn audience(members: &[i64]) -> Option<Audience> {
        Audience::new(members.iter().copied().map(MembershipId))
    }

    #[test]
    fn each_subscriber_is_in_exactly_one_group() {
        let (one, two) = (audience(&[1, 2]), audience(&[2, 3]));
        let groups = group([one.as_ref(), None, two.as_ref()]);

        assert_eq!(groups.len(), 4);
        for member in [Some(1), Some(2), Some(3), Some(4), None] {
            let member = member.map(MembershipId);
            let of_member: Vec<_> = groups
                .iter()
                .filter(|it| it.receivers.include(member))
                .collect();
            assert_eq!(of_member.len(), 1, "{member:?}");
            for audience in [&one, &two] {
                let is_in = member.is_some_and(|it| audience.as_ref().unwrap().contains(it));
                assert_eq!(of_member[0].viewer.sees(audience.as_ref()), is_in);
            }
        }
    }

    #[test]
    fn without_an_audience_everyone_receives_the_same() {
        let groups = group([None, None]);

        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].receivers, Receivers::Everyone);
    }
}
