//! Counts the active and away sockets of each member in each conversation of this node, and returns
//! who is present. No I/O.

use std::collections::{BTreeMap, HashMap};

use base::ids::{ConversationId, MembershipId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether a present member is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresenceState)]
#[serde(rename_all = "snake_case")]
pub enum PresenceState {
    /// At least one socket is not away.
    Online,
    /// Connected, but every socket is away.
    Away,
}

/// A member who is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Present)]
pub struct PresentMember {
    pub membership_id: MembershipId,
    pub state: PresenceState,
}

/// Sockets by conversation and member. Every change returns whether others can see it.
#[derive(Debug, Default)]
pub struct PresenceTable {
    /// Contains a conversation while a member is present.
    conversations: HashMap<ConversationId, BTreeMap<MembershipId, SocketCount>>,
}

/// How many sockets of one member are active, and how many are away.
#[derive(Clone, Copy, Debug, Default)]
struct SocketCount {
    online: u32,
    away: u32,
}

impl PresenceTable {
    /// Adds a socket of the member.
    pub fn join(&mut self, at: ConversationId, membership: MembershipId, away: bool) -> bool {
        self.update(at, membership, |it| *it.counter_mut(away) += 1)
    }

    /// Removes a socket; `away` is its last state.
    pub fn leave(&mut self, at: ConversationId, membership: MembershipId, away: bool) -> bool {
        self.update(at, membership, |it| it.decrement(away))
    }

    /// Changes a socket's state; `away` is the new state, which differs from the old one.
    pub fn set_away(&mut self, at: ConversationId, membership: MembershipId, away: bool) -> bool {
        self.update(at, membership, |it| {
            it.decrement(!away);
            *it.counter_mut(away) += 1;
        })
    }

    /// Returns the present members, by membership.
    pub fn members(&self, at: ConversationId) -> Vec<PresentMember> {
        let room = self.conversations.get(&at).into_iter().flatten();
        room.filter_map(|(who, sockets)| {
            let state = sockets.state()?;
            Some(PresentMember {
                membership_id: *who,
                state,
            })
        })
        .collect()
    }

    /// Returns the conversations in which a member is present, each with its members.
    pub fn conversations(&self) -> impl Iterator<Item = (ConversationId, Vec<PresentMember>)> {
        let conversations = self.conversations.keys();
        conversations.map(|at| (*at, self.members(*at)))
    }

    fn update(
        &mut self,
        at: ConversationId,
        membership: MembershipId,
        change: impl FnOnce(&mut SocketCount),
    ) -> bool {
        let room = self.conversations.entry(at).or_default();
        let sockets = room.entry(membership).or_default();
        let before = sockets.state();
        change(sockets);
        let after = sockets.state();
        if after.is_none() {
            room.remove(&membership);
        }
        if room.is_empty() {
            self.conversations.remove(&at);
        }
        before != after
    }
}

impl SocketCount {
    fn state(self) -> Option<PresenceState> {
        match self {
            Self { online: 1.., .. } => Some(PresenceState::Online),
            Self { away: 1.., .. } => Some(PresenceState::Away),
            _ => None,
        }
    }

    fn counter_mut(&mut self, away: bool) -> &mut u32 {
        match away {
            true => &mut self.away,
            false => &mut self.online,
        }
    }

    fn decrement(&mut self, away: bool) {
        let place = self.counter_mut(away);
        *place = place.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use base::ids::{ConversationId, MembershipId};
    use proptest::prelude::*;

    use super::{PresenceState, PresenceTable};

    const HERE: ConversationId = ConversationId(7);
    const ANN: MembershipId = MembershipId(1);
    const BOB: MembershipId = MembershipId(2);

    fn members_of(table: &PresenceTable) -> Vec<(i64, PresenceState)> {
        let all = table.members(HERE).into_iter();
        all.map(|it| (it.membership_id.0, it.state)).collect()
    }

    #[test]
    fn a_member_is_online_while_any_of_their_sockets_is() {
        let mut table = PresenceTable::default();

        assert!(table.join(HERE, ANN, false));
        assert!(!table.join(HERE, ANN, true));
        assert_eq!(members_of(&table), [(1, PresenceState::Online)]);
        assert!(table.set_away(HERE, ANN, true));
        assert_eq!(members_of(&table), [(1, PresenceState::Away)]);
        assert!(!table.leave(HERE, ANN, true));
        assert!(table.leave(HERE, ANN, true));
        assert_eq!(members_of(&table), []);
    }

    #[test]
    fn conversations_are_counted_separately() {
        let mut table = PresenceTable::default();
        table.join(HERE, BOB, false);
        table.join(HERE, ANN, false);
        table.join(ConversationId(8), ANN, true);

        assert_eq!(
            members_of(&table),
            [(1, PresenceState::Online), (2, PresenceState::Online)]
        );
    }

    proptest! {
        #[test]
        fn a_conversation_without_sockets_has_no_entry(
            sockets in proptest::collection::vec((0..3i64, 0..3i64, any::<bool>(), any::<bool>()), 0..30),
        ) {
            let mut table = PresenceTable::default();
            for (conversation, member, is_away, is_toggled) in &sockets {
                table.join(ConversationId(*conversation), MembershipId(*member), *is_away);
                if *is_toggled {
                    table.set_away(ConversationId(*conversation), MembershipId(*member), !is_away);
                }
            }
            for (conversation, member, is_away, is_toggled) in &sockets {
                table.leave(ConversationId(*conversation), MembershipId(*member), is_away ^ is_toggled);
            }
            prop_assert!(table.conversations.is_empty());
        }
    }
}
