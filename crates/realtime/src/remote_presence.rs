//! Stores which members are connected to other nodes, as those nodes reported. No I/O.
//!
//! A node reports its complete presence periodically; after [`EXPIRY`] without a report it counts
//! as dead, and its members as absent.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use base::ids::ConversationId;
use tokio::time::Instant;
use uuid::Uuid;

use crate::presence_table::PresentMember;

/// How often a node reports its presence.
pub const REPORT_INTERVAL: Duration = Duration::from_secs(4);

/// How long a report is valid.
pub const EXPIRY: Duration = Duration::from_secs(13);

/// Conversations by node.
#[derive(Debug, Default)]
pub struct RemotePresence {
    nodes: HashMap<Uuid, RemoteNode>,
}

#[derive(Debug)]
struct RemoteNode {
    last_seen_at: Instant,
    conversations: HashMap<ConversationId, Vec<PresentMember>>,
}

impl RemotePresence {
    /// Applies a report: the members in these conversations, and, if it is complete, in no others.
    /// Returns the conversations that changed.
    pub fn apply(
        &mut self,
        node: Uuid,
        is_complete: bool,
        reported: Vec<(ConversationId, Vec<PresentMember>)>,
        now: Instant,
    ) -> Vec<ConversationId> {
        let node = self.nodes.entry(node).or_insert_with(|| RemoteNode {
            last_seen_at: now,
            conversations: HashMap::new(),
        });
        node.last_seen_at = now;
        let reported_ids: HashSet<ConversationId> = reported.iter().map(|(at, _)| *at).collect();
        let mut changed = Vec::new();
        if is_complete {
            let left = node
                .conversations
                .extract_if(|at, _| !reported_ids.contains(at));
            changed.extend(left.map(|(at, _)| at));
        }
        for (at, members) in reported {
            let before = match members.is_empty() {
                true => node.conversations.remove(&at),
                false => node.conversations.insert(at, members.clone()),
            };
            if before.unwrap_or_default() != members {
                changed.push(at);
            }
        }
        changed
    }

    /// Removes a closed node. Returns the conversations in which it had members.
    pub fn remove_node(&mut self, node: Uuid) -> Vec<ConversationId> {
        let node = self.nodes.remove(&node);
        node.map_or_else(Vec::new, |it| it.conversations.into_keys().collect())
    }

    /// Removes the nodes that stopped reporting, and returns their conversations.
    pub fn expire(&mut self, now: Instant) -> Vec<ConversationId> {
        let is_dead = |it: &RemoteNode| now.duration_since(it.last_seen_at) >= EXPIRY;
        let dead = self.nodes.extract_if(|_, it| is_dead(it));
        dead.flat_map(|(_, it)| it.conversations.into_keys())
            .collect()
    }

    /// Returns the members that other nodes report for a conversation; duplicates are possible.
    pub fn users(&self, at: ConversationId) -> impl Iterator<Item = PresentMember> {
        let members = self
            .nodes
            .values()
            .filter_map(move |it| it.conversations.get(&at));
        members.flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::ids::{ConversationId, MembershipId};
    use tokio::time::Instant;
    use uuid::Uuid;

    use super::{EXPIRY, RemotePresence};
    use crate::presence_table::{PresenceState, PresentMember};

    const HERE: ConversationId = ConversationId(7);
    const THERE: ConversationId = ConversationId(8);
    const ONE: Uuid = Uuid::from_u128(1);
    const TWO: Uuid = Uuid::from_u128(2);

    fn ann() -> Vec<PresentMember> {
        vec![PresentMember {
            membership_id: MembershipId(1),
            state: PresenceState::Online,
        }]
    }

    #[test]
    fn only_changed_conversations_are_reported() {
        let (mut presence, now) = (RemotePresence::default(), Instant::now());

        assert_eq!(presence.apply(ONE, false, vec![(HERE, ann())], now), [HERE]);
        assert_eq!(presence.apply(ONE, true, vec![(HERE, ann())], now), []);
        assert_eq!(
            presence.apply(ONE, true, vec![(THERE, ann())], now),
            [HERE, THERE]
        );
        assert_eq!(presence.users(HERE).count(), 0);
        assert_eq!(
            presence.apply(ONE, false, vec![(THERE, vec![])], now),
            [THERE]
        );
        assert_eq!(presence.apply(ONE, false, vec![(THERE, vec![])], now), []);
    }

    #[test]
    fn members_of_a_node_that_dies_or_closes_are_removed() {
        let (mut presence, now) = (RemotePresence::default(), Instant::now());
        presence.apply(ONE, true, vec![(HERE, ann())], now);
        presence.apply(TWO, true, vec![(HERE, ann())], now + Duration::from_secs(1));

        assert_eq!(presence.expire(now + EXPIRY), [HERE]);
        assert_eq!(presence.users(HERE).count(), 1);
        assert_eq!(presence.remove_node(TWO), [HERE]);
        assert_eq!(presence.users(HERE).count(), 0);
        assert_eq!(presence.remove_node(TWO), []);
    }
}
