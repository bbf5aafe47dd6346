//! Open sockets: how many a person has, and how many lead to one address.

use crate::accounts::limits::Address;
use crate::ids::UserId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Open sockets, per person and per address.
pub struct Sockets {
    by_user: Places<UserId>,
    by_address: Places<Address>,
}

/// A place for one socket, free again when this value goes.
pub struct SocketPlace {
    _by_user: Place<UserId>,
    _by_address: Option<Place<Address>>,
}

impl Sockets {
    /// So many per person, and so many per address.
    pub fn new(per_user: u32, per_address: u32) -> Self {
        Self {
            by_user: Places::new(per_user),
            by_address: Places::new(per_address),
        }
    }

    /// A place for one more; `None`: this person, or this address, has enough.
    ///
    /// Those of this machine are not counted by address: that would be everybody's behind a proxy
    /// that nobody told us of.
    pub fn take(&self, user: UserId, address: Option<Address>) -> Option<SocketPlace> {
        let address = address.filter(|it| !it.is_loopback());
        let by_address = match address {
            Some(address) => Some(self.by_address.take(address)?),
            None => None,
        };
        Some(SocketPlace {
            _by_user: self.by_user.take(user)?,
            _by_address: by_address,
        })
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.by_user.held.lock().values().sum()
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
    use super::Sockets;
    use crate::accounts::limits::Address;
    use crate::ids::UserId;
    use std::net::IpAddr;

    #[test]
    fn a_closed_socket_makes_place() {
        let sockets = Sockets::new(2, 3);
        let here = Some(Address::from(IpAddr::from([10, 0, 0, 1])));
        let one = sockets.take(UserId(1), here);
        let _two = sockets.take(UserId(1), here);
        assert!(sockets.take(UserId(1), None).is_none());
        let _three = sockets.take(UserId(2), here).unwrap();
        assert!(sockets.take(UserId(3), here).is_none());
        assert_eq!(sockets.count(), 3);

        drop(one);

        assert_eq!(sockets.count(), 2);
        assert!(sockets.take(UserId(3), here).is_some());
        assert!(sockets.take(UserId(1), here).is_some());
        assert_eq!(sockets.by_user.held.lock().get(&UserId(3)), None);
        assert_eq!(sockets.by_address.held.lock().len(), 1);
    }

    #[test]
    fn those_of_this_machine_are_counted_by_person_alone() {
        let sockets = Sockets::new(2, 1);
        let this_machine = Some(Address::from(IpAddr::from([127, 0, 0, 1])));

        let held = [1, 2, 3].map(|it| sockets.take(UserId(it), this_machine));

        assert!(held.iter().all(Option::is_some));
    }
}
