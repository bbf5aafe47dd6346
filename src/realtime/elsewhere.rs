//! Who is with the other nodes, as they told. Pure.
//!
//! A node tells all of it again and again; one of which nothing is heard for [`EXPIRY`] is dead,
//! and nobody is with it.

use crate::ids::ConversationId;
use crate::realtime::presence::Present;
use std::collections::HashMap;
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// How often a node tells who is with it.
pub const TELL_EVERY: Duration = Duration::from_secs(4);

/// What a node told holds for so long.
pub const EXPIRY: Duration = Duration::from_secs(13);

/// Rooms by node.
#[derive(Debug, Default)]
pub struct Elsewhere {
    nodes: HashMap<Uuid, Node>,
}

#[derive(Debug)]
struct Node {
    heard: Instant,
    rooms: HashMap<ConversationId, Vec<Present>>,
}

impl Elsewhere {
    /// A node told who is with it: in these rooms, and, if this is the whole, in no others. Returns
    /// the rooms in which something changed.
    pub fn hear(
        &mut self,
        node: Uuid,
        whole: bool,
        told: Vec<(ConversationId, Vec<Present>)>,
        now: Instant,
    ) -> Vec<ConversationId> {
        let node = self.nodes.entry(node).or_insert_with(|| Node {
            heard: now,
            rooms: HashMap::new(),
        });
        node.heard = now;
        let named: HashSet<ConversationId> = told.iter().map(|(at, _)| *at).collect();
        let mut changed = Vec::new();
        if whole {
            let left = node.rooms.extract_if(|at, _| !named.contains(at));
            changed.extend(left.map(|(at, _)| at));
        }
        for (at, people) in told {
            let before = match people.is_empty() {
                true => node.rooms.remove(&at),
                false => node.rooms.insert(at, people.clone()),
            };
            if before.unwrap_or_default() != people {
                changed.push(at);
            }
        }
        changed
    }

    /// A node has closed. Returns the rooms in which somebody was with it.
    pub fn gone(&mut self, node: Uuid) -> Vec<ConversationId> {
        let node = self.nodes.remove(&node);
        node.map_or_else(Vec::new, |it| it.rooms.into_keys().collect())
    }

    /// Forgets the nodes of which nothing is heard any more, and returns their rooms.
    pub fn expire(&mut self, now: Instant) -> Vec<ConversationId> {
        let is_dead = |it: &Node| now.duration_since(it.heard) >= EXPIRY;
        let dead = self.nodes.extract_if(|_, it| is_dead(it));
        dead.flat_map(|(_, it)| it.rooms.into_keys()).collect()
    }

    /// Who is in a room with any other node; somebody may be there twice.
    pub fn people(&self, at: ConversationId) -> impl Iterator<Item = Present> {
        let rooms = self.nodes.values().filter_map(move |it| it.rooms.get(&at));
        rooms.flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::EXPIRY;
    use super::Elsewhere;
    use crate::ids::ConversationId;
    use crate::ids::MembershipId;
    use crate::realtime::presence::Present;
    use crate::realtime::presence::State;
    use std::time::Duration;
    use tokio::time::Instant;
    use uuid::Uuid;

    const HERE: ConversationId = ConversationId(7);
    const THERE: ConversationId = ConversationId(8);
    const ONE: Uuid = Uuid::from_u128(1);
    const TWO: Uuid = Uuid::from_u128(2);

    fn ann() -> Vec<Present> {
        vec![Present {
            membership_id: MembershipId(1),
            state: State::Online,
        }]
    }

    #[test]
    fn only_what_changed_is_news() {
        let (mut elsewhere, now) = (Elsewhere::default(), Instant::now());

        assert_eq!(elsewhere.hear(ONE, false, vec![(HERE, ann())], now), [HERE]);
        assert_eq!(elsewhere.hear(ONE, true, vec![(HERE, ann())], now), []);
        assert_eq!(
            elsewhere.hear(ONE, true, vec![(THERE, ann())], now),
            [HERE, THERE]
        );
        assert_eq!(elsewhere.people(HERE).count(), 0);
        assert_eq!(
            elsewhere.hear(ONE, false, vec![(THERE, vec![])], now),
            [THERE]
        );
        assert_eq!(elsewhere.hear(ONE, false, vec![(THERE, vec![])], now), []);
    }

    #[test]
    fn who_is_with_a_node_that_dies_or_closes_is_gone() {
        let (mut elsewhere, now) = (Elsewhere::default(), Instant::now());
        elsewhere.hear(ONE, true, vec![(HERE, ann())], now);
        elsewhere.hear(TWO, true, vec![(HERE, ann())], now + Duration::from_secs(1));

        assert_eq!(elsewhere.expire(now + EXPIRY), [HERE]);
        assert_eq!(elsewhere.people(HERE).count(), 1);
        assert_eq!(elsewhere.gone(TWO), [HERE]);
        assert_eq!(elsewhere.people(HERE).count(), 0);
        assert_eq!(elsewhere.gone(TWO), []);
    }
}
