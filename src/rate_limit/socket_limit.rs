//! Limits open WebSockets per user and per address, on this node and, if Redis is available, on all
//! nodes together; lists the credentials of this node's sockets.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use base::ids::UserId;
use parking_lot::Mutex;
use realtime::cluster::shared_counter::{CounterEntry, CounterSpec, SharedCounter};

use crate::accounts::credential::Credential;
use crate::rate_limit::client_network::ClientNetwork;

/// Interval at which the permits in the cluster are renewed; those of a dead node expire.
pub const RENEW_INTERVAL: Duration = Duration::from_secs(20);

/// Lifetime of a cluster permit that is not renewed.
const PERMIT_LIFETIME: Duration = Duration::from_secs(70);

/// Credentials with open sockets: their user, and the number of sockets.
type SocketsByCredential = Arc<Mutex<HashMap<Credential, (UserId, usize)>>>;

/// Counts open sockets per user and per address.
pub struct SocketLimit {
    by_user: PermitCounts<UserId>,
    by_address: PermitCounts<ClientNetwork>,
    /// Credentials of the sockets of this node.
    credentials: SocketsByCredential,
    shared: SharedCounter,
    /// The cluster permits of this node.
    entries: Arc<Mutex<HashMap<u64, Vec<CounterEntry>>>>,
}

/// A permit for one socket, released on drop.
pub struct SocketPermit {
    _by_user: LocalPermit<UserId>,
    _by_address: Option<LocalPermit<ClientNetwork>>,
    credential: (Credential, SocketsByCredential),
    cluster_permit: Option<ClusterPermit>,
}

/// A permit counted on all nodes together.
struct ClusterPermit {
    id: u64,
    entries: Arc<Mutex<HashMap<u64, Vec<CounterEntry>>>>,
    shared: SharedCounter,
}

impl SocketLimit {
    /// Creates the limits per user and per address.
    pub fn new(per_user: u32, per_address: u32, shared: &SharedCounter) -> Self {
        Self {
            by_user: PermitCounts::new(per_user),
            by_address: PermitCounts::new(per_address),
            credentials: Arc::default(),
            shared: shared.clone(),
            entries: Arc::default(),
        }
    }

    /// Acquires a permit for a socket. Returns `None` if the user or the address has reached its
    /// limit.
    ///
    /// Loopback addresses are not counted, because behind an unconfigured proxy every client would
    /// have one.
    pub async fn acquire(
        &self,
        user: UserId,
        credential: Credential,
        address: Option<ClientNetwork>,
    ) -> Option<SocketPermit> {
        let address = address.filter(|it| !it.is_loopback());
        let by_address = match address {
            Some(address) => Some(self.by_address.acquire(address)?),
            None => None,
        };
        let mut permit = SocketPermit {
            _by_user: self.by_user.acquire(user)?,
            _by_address: by_address,
            credential: (credential, self.credentials.clone()),
            cluster_permit: None,
        };
        self.credentials
            .lock()
            .entry(credential)
            .or_insert((user, 0))
            .1 += 1;
        permit.cluster_permit = self.acquire_cluster_permit(user, address).await?;
        Some(permit)
    }

    async fn acquire_cluster_permit(
        &self,
        user: UserId,
        address: Option<ClientNetwork>,
    ) -> Option<Option<ClusterPermit>> {
        let by_user = self
            .by_user
            .counter_spec("socket_of_user", user.to_string());
        let mut entries = Vec::new();
        let first = match self.shared.acquire(by_user).await {
            Ok(mark) => mark,
            Err(_) => return None,
        };
        entries.extend(first);
        if let Some(address) = address {
            let by_address = self
                .by_address
                .counter_spec("socket_from", address.to_string());
            match self.shared.acquire(by_address).await {
                Ok(mark) => entries.extend(mark),
                Err(_) => {
                    entries.into_iter().for_each(|it| self.shared.release(it));
                    return None;
                }
            }
        }
        if entries.is_empty() {
            return Some(None);
        }
        let id = rand::random();
        self.entries.lock().insert(id, entries);
        Some(Some(ClusterPermit {
            id,
            entries: self.entries.clone(),
            shared: self.shared.clone(),
        }))
    }

    /// Renews the cluster permits of this node.
    pub fn renew(&self) {
        let entries: Vec<CounterEntry> = self.entries.lock().values().flatten().cloned().collect();
        for mark in entries {
            self.shared.renew(mark);
        }
    }

    /// Returns the credentials with open sockets on this node, and their users.
    pub fn credentials(&self) -> Vec<(Credential, UserId)> {
        let shown = self.credentials.lock();
        shown.iter().map(|(it, (user, _))| (*it, *user)).collect()
    }

    /// Returns the number of open sockets.
    pub fn n_open(&self) -> usize {
        self.by_user.held.lock().values().sum()
    }
}

impl Drop for SocketPermit {
    fn drop(&mut self) {
        let (it, all) = &self.credential;
        let mut all = all.lock();
        if let Some((_, count)) = all.get_mut(it) {
            *count -= 1;
            if *count == 0 {
                all.remove(it);
            }
        }
    }
}

impl Drop for ClusterPermit {
    fn drop(&mut self) {
        let marks = self.entries.lock().remove(&self.id);
        for mark in marks.into_iter().flatten() {
            self.shared.release(mark);
        }
    }
}

/// Number of held permits per key; `max` 0 means no limit.
struct PermitCounts<K: Eq + Hash> {
    max: usize,
    held: Arc<Mutex<HashMap<K, usize>>>,
}

/// One held permit.
struct LocalPermit<K: Eq + Hash> {
    key: K,
    held: Arc<Mutex<HashMap<K, usize>>>,
}

impl<K: Eq + Hash + Copy> PermitCounts<K> {
    fn counter_spec(&self, kind: &'static str, subject: String) -> CounterSpec {
        CounterSpec {
            key: (kind, subject),
            max: self.max,
            window: PERMIT_LIFETIME,
        }
    }

    fn new(max: u32) -> Self {
        Self {
            max: usize::try_from(max).unwrap_or(usize::MAX),
            held: Arc::default(),
        }
    }

    fn acquire(&self, key: K) -> Option<LocalPermit<K>> {
        let mut held = self.held.lock();
        let count = held.entry(key).or_default();
        if self.max != 0 && *count >= self.max {
            return None;
        }
        *count += 1;
        Some(LocalPermit {
            key,
            held: self.held.clone(),
        })
    }
}

impl<K: Eq + Hash> Drop for LocalPermit<K> {
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
    use std::net::IpAddr;

    use base::ids::{SessionId, UserId};
    use realtime::cluster::shared_counter::SharedCounter;

    use super::SocketLimit;
    use crate::accounts::credential::Credential;
    use crate::rate_limit::client_network::ClientNetwork;

    const BROWSER: Credential = Credential::Session(SessionId(1));

    #[tokio::test]
    async fn a_closed_socket_releases_its_permit() {
        let sockets = SocketLimit::new(2, 3, &SharedCounter::none());
        let network = Some(ClientNetwork::from(IpAddr::from([10, 0, 0, 1])));
        let one = sockets.acquire(UserId(1), BROWSER, network).await;
        let _two = sockets.acquire(UserId(1), BROWSER, network).await;
        assert!(sockets.acquire(UserId(1), BROWSER, None).await.is_none());
        let _three = sockets.acquire(UserId(2), BROWSER, network).await.unwrap();
        assert!(sockets.acquire(UserId(3), BROWSER, network).await.is_none());
        assert_eq!(sockets.n_open(), 3);

        drop(one);

        assert_eq!(sockets.n_open(), 2);
        assert!(sockets.acquire(UserId(3), BROWSER, network).await.is_some());
        assert!(sockets.acquire(UserId(1), BROWSER, network).await.is_some());
        assert_eq!(sockets.by_user.held.lock().get(&UserId(3)), None);
        assert_eq!(sockets.by_address.held.lock().len(), 1);
    }

    #[tokio::test]
    async fn loopback_sockets_are_counted_by_user_only() {
        let sockets = SocketLimit::new(2, 1, &SharedCounter::none());
        let this_machine = Some(ClientNetwork::from(IpAddr::from([127, 0, 0, 1])));

        let mut held = Vec::new();
        for it in [1, 2, 3] {
            held.push(sockets.acquire(UserId(it), BROWSER, this_machine).await);
        }

        assert!(held.iter().all(Option::is_some));
    }
}
