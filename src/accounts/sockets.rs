//! Open sockets: how many a person has, and how many lead to one address.

use crate::accounts::limits::Address;
use crate::ids::ApiKeyId;
use crate::ids::SessionId;
use crate::ids::UserId;
use crate::realtime::bus::tally::Count;
use crate::realtime::bus::tally::Mark;
use crate::realtime::bus::tally::Tally;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// A place on all nodes together is kept up this often; a node that dies keeps none.
pub const KEEP_UP_EVERY: Duration = Duration::from_secs(20);

/// What a place holds for that is not kept up.
const HELD_FOR: Duration = Duration::from_secs(70);

/// What opened sockets, whose it is, and how many it opened.
type Openers = Arc<Mutex<HashMap<Shown, (UserId, usize)>>>;

/// Open sockets, per person and per address.
pub struct Sockets {
    by_user: Places<UserId>,
    by_address: Places<Address>,
    /// What opened those of this node.
    shown: Openers,
    everywhere: Tally,
    /// The places of this node among those of all.
    marks: Arc<Mutex<HashMap<u64, Vec<Mark>>>>,
}

/// What somebody showed to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shown {
    Session(SessionId),
    Key(ApiKeyId),
}

impl Shown {
    /// The session, if it is one.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Self::Session(id) => Some(*id),
            Self::Key(_) => None,
        }
    }

    /// The key, if it is one.
    pub fn key(&self) -> Option<ApiKeyId> {
        match self {
            Self::Key(id) => Some(*id),
            Self::Session(_) => None,
        }
    }
}

/// A place for one socket, free again when this value goes.
pub struct SocketPlace {
    _by_user: Place<UserId>,
    _by_address: Option<Place<Address>>,
    shown: (Shown, Openers),
    everywhere: Option<Everywhere>,
}

/// The place among those of all nodes.
struct Everywhere {
    id: u64,
    marks: Arc<Mutex<HashMap<u64, Vec<Mark>>>>,
    tally: Tally,
}

impl Sockets {
    /// So many per person, and so many per address.
    pub fn new(per_user: u32, per_address: u32, everywhere: &Tally) -> Self {
        Self {
            by_user: Places::new(per_user),
            by_address: Places::new(per_address),
            shown: Arc::default(),
            everywhere: everywhere.clone(),
            marks: Arc::default(),
        }
    }

    /// A place for one more; `None`: this person, or this address, has enough.
    ///
    /// Those of this machine are not counted by address: that would be everybody's behind a proxy
    /// that nobody told us of.
    pub async fn take(
        &self,
        user: UserId,
        shown: Shown,
        address: Option<Address>,
    ) -> Option<SocketPlace> {
        let address = address.filter(|it| !it.is_loopback());
        let by_address = match address {
            Some(address) => Some(self.by_address.take(address)?),
            None => None,
        };
        let mut place = SocketPlace {
            _by_user: self.by_user.take(user)?,
            _by_address: by_address,
            shown: (shown, self.shown.clone()),
            everywhere: None,
        };
        self.shown.lock().entry(shown).or_insert((user, 0)).1 += 1;
        place.everywhere = self.take_everywhere(user, address).await?;
        Some(place)
    }

    async fn take_everywhere(
        &self,
        user: UserId,
        address: Option<Address>,
    ) -> Option<Option<Everywhere>> {
        let by_user = self.by_user.count("socket_of_user", user.to_string());
        let mut taken = Vec::new();
        let marked = match self.everywhere.take(by_user).await {
            Ok(mark) => mark,
            Err(_) => return None,
        };
        taken.extend(marked);
        if let Some(address) = address {
            let by_address = self.by_address.count("socket_from", address.to_string());
            match self.everywhere.take(by_address).await {
                Ok(mark) => taken.extend(mark),
                Err(_) => {
                    taken
                        .into_iter()
                        .for_each(|it| self.everywhere.give_back(it));
                    return None;
                }
            }
        }
        if taken.is_empty() {
            return Some(None);
        }
        let id = rand::random();
        self.marks.lock().insert(id, taken);
        Some(Some(Everywhere {
            id,
            marks: self.marks.clone(),
            tally: self.everywhere.clone(),
        }))
    }

    /// Keeps up the places of this node among those of all.
    pub fn keep_up(&self) {
        let marks: Vec<Mark> = self.marks.lock().values().flatten().cloned().collect();
        for mark in marks {
            self.everywhere.keep_up(mark);
        }
    }

    /// What opened the sockets of this node, and whose it is.
    pub fn shown(&self) -> Vec<(Shown, UserId)> {
        let shown = self.shown.lock();
        shown.iter().map(|(it, (user, _))| (*it, *user)).collect()
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.by_user.held.lock().values().sum()
    }
}

impl Drop for SocketPlace {
    fn drop(&mut self) {
        let (it, all) = &self.shown;
        let mut all = all.lock();
        if let Some((_, count)) = all.get_mut(it) {
            *count -= 1;
            if *count == 0 {
                all.remove(it);
            }
        }
    }
}

impl Drop for Everywhere {
    fn drop(&mut self) {
        let marks = self.marks.lock().remove(&self.id);
        for mark in marks.into_iter().flatten() {
            self.tally.give_back(mark);
        }
    }
}

/// How many of each key are held; 0 is no limit.
struct Places<K: Eq + Hash> {
    most: usize,
    held: Arc<Mutex<HashMap<K, usize>>>,
}

/// One of them.
struct Place<K: Eq + Hash> {
    key: K,
    held: Arc<Mutex<HashMap<K, usize>>>,
}

impl<K: Eq + Hash + Copy> Places<K> {
    fn count(&self, kind: &'static str, who: String) -> Count {
        Count {
            of: (kind, who),
            most: self.most,
            span: HELD_FOR,
        }
    }

    fn new(most: u32) -> Self {
        Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            held: Arc::default(),
        }
    }

    fn take(&self, key: K) -> Option<Place<K>> {
        let mut held = self.held.lock();
        let count = held.entry(key).or_default();
        if self.most != 0 && *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Place {
            key,
            held: self.held.clone(),
        })
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        if let Some(count) = held.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Shown;
    use super::Sockets;
    use crate::accounts::limits::Address;
    use crate::ids::SessionId;
    use crate::ids::UserId;
    use crate::realtime::bus::tally::Tally;
    use std::net::IpAddr;

    const BROWSER: Shown = Shown::Session(SessionId(1));

    #[tokio::test]
    async fn a_closed_socket_makes_place() {
        let sockets = Sockets::new(2, 3, &Tally::none());
        let here = Some(Address::from(IpAddr::from([10, 0, 0, 1])));
        let one = sockets.take(UserId(1), BROWSER, here).await;
        let _two = sockets.take(UserId(1), BROWSER, here).await;
        assert!(sockets.take(UserId(1), BROWSER, None).await.is_none());
        let _three = sockets.take(UserId(2), BROWSER, here).await.unwrap();
        assert!(sockets.take(UserId(3), BROWSER, here).await.is_none());
        assert_eq!(sockets.count(), 3);

        drop(one);

        assert_eq!(sockets.count(), 2);
        assert!(sockets.take(UserId(3), BROWSER, here).await.is_some());
        assert!(sockets.take(UserId(1), BROWSER, here).await.is_some());
        assert_eq!(sockets.by_user.held.lock().get(&UserId(3)), None);
        assert_eq!(sockets.by_address.held.lock().len(), 1);
    }

    #[tokio::test]
    async fn those_of_this_machine_are_counted_by_person_alone() {
        let sockets = Sockets::new(2, 1, &Tally::none());
        let this_machine = Some(Address::from(IpAddr::from([127, 0, 0, 1])));

        let mut held = Vec::new();
        for it in [1, 2, 3] {
            held.push(sockets.take(UserId(it), BROWSER, this_machine).await);
        }

        assert!(held.iter().all(Option::is_some));
    }
}
