//! Stores which users type in which conversation, returns which of their signals must be published,
//! and removes a user whose last signal is too old. No I/O.

use std::collections::HashMap;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, UserId};
use serde::{Deserialize, Serialize};

/// How long one typing signal is valid.
pub const EXPIRY: Duration = Duration::from_secs(6);

/// Continued typing is published again, but not more often than this.
const REPEAT_INTERVAL: Duration = Duration::from_secs(2);

/// A typing member, and the user who must not receive the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TypingKey {
    pub conversation: ConversationId,
    pub membership: MembershipId,
    pub user: UserId,
}

/// The typing users. Time is an argument; a change returns whether to publish it.
#[derive(Debug, Default)]
pub struct TypingUsers {
    entries: HashMap<TypingKey, TypingEntry>,
}

#[derive(Clone, Copy, Debug)]
struct TypingEntry {
    expires_at: Timestamp,
    published_at: Timestamp,
}

impl TypingUsers {
    /// Records a typing signal.
    pub fn start(&mut self, key: TypingKey, now: Timestamp) -> bool {
        let published_at = self.entries.get(&key).map(|it| it.published_at);
        let should_publish = published_at.is_none_or(|it| it.plus(REPEAT_INTERVAL) <= now);
        let typist = TypingEntry {
            expires_at: now.plus(EXPIRY),
            published_at: published_at.filter(|_| !should_publish).unwrap_or(now),
        };
        self.entries.insert(key, typist);
        should_publish
    }

    /// Records that the user stopped.
    pub fn stop(&mut self, key: TypingKey) -> bool {
        self.entries.remove(&key).is_some()
    }

    /// Removes and returns the users whose last signal is too old.
    pub fn expire(&mut self, now: Timestamp) -> Vec<TypingKey> {
        self.entries
            .extract_if(|_, it| it.expires_at <= now)
            .map(|(key, _)| key)
            .collect()
    }

    /// Returns when the next one expires.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.entries.values().map(|it| it.expires_at).min()
    }
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use base::ids::{ConversationId, MembershipId, UserId};

    use super::{TypingKey, TypingUsers};

    const ANN: TypingKey = TypingKey {
        conversation: ConversationId(7),
        membership: MembershipId(1),
        user: UserId(4),
    };

    #[test]
    fn typing_expires_six_seconds_after_the_last_key() {
        let mut typing_users = TypingUsers::default();

        typing_users.start(ANN, Timestamp(0));
        typing_users.start(ANN, Timestamp(3_000));

        assert_eq!(typing_users.next_expiry(), Some(Timestamp(9_000)));
        assert_eq!(typing_users.expire(Timestamp(8_999)), []);
        assert_eq!(typing_users.expire(Timestamp(9_000)), [ANN]);
        assert_eq!(typing_users.next_expiry(), None);
    }

    #[test]
    fn repeated_keys_are_published_at_an_interval() {
        let mut typing_users = TypingUsers::default();

        assert!(typing_users.start(ANN, Timestamp(0)));
        assert!(!typing_users.start(ANN, Timestamp(1_000)));
        assert!(typing_users.start(ANN, Timestamp(2_000)));
        assert!(!typing_users.start(ANN, Timestamp(3_999)));
        assert!(typing_users.stop(ANN));
        assert!(!typing_users.stop(ANN));
    }
}
