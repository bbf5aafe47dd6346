//! Announces changes of memories and summaries to open pages, in the order in which they were committed
//! on this node. The caller announces after its commit and does not wait: a task loads the events and
//! publishes them.

use std::collections::VecDeque;
use std::sync::Arc;

use base::clock::Clock;
use base::ids::{ConversationId, SpaceId};
use base::shutdown::Shutdown;
use parking_lot::Mutex;
use realtime::envelope::Envelope;
use realtime::hub::Hub;
use realtime::topic::Topic;
use sea_orm::DbErr;

use crate::db::connect::Db;
use crate::memories::events::change_loader;
use crate::memories::events::change_loader::ChangeLoader;
use crate::memories::summaries::summary;
use crate::providers::provider_factory::ProviderFactory;

/// How many announcements may wait. Further ones are dropped: the events are not durable, and a page
/// can read everything again.
const MAX_WAITING: usize = 1_024;

/// Announces the changes that this node commits. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct MemoryAnnouncer {
    loader: ChangeLoader,
    hub: Hub,
    shutdown: Shutdown,
    queue: SharedQueue,
}

type SharedQueue = Arc<Mutex<AnnouncementQueue>>;

/// The announcements that wait.
#[derive(Default)]
struct AnnouncementQueue {
    waiting: VecDeque<Announcement>,
    /// Whether a task publishes them.
    is_running: bool,
}

impl AnnouncementQueue {
    /// Adds an announcement. Returns whether a task must be started.
    fn add(&mut self, new: Announcement) -> bool {
        // An equal announcement in the queue will load this change, too. Announcements with a count are never
        // merged.
        let is_counted = matches!(new, Announcement::Forgotten(..));
        if !is_counted && self.waiting.contains(&new) {
            return false;
        }
        if self.waiting.len() >= MAX_WAITING {
            tracing::debug!("an announcement of the memory was dropped: too many wait");
            return false;
        }
        self.waiting.push_back(new);
        !std::mem::replace(&mut self.is_running, true)
    }
}

/// The task that publishes. When it ends, and also if it panics, the next announcement starts another one.
struct PublishingTask(SharedQueue);

impl PublishingTask {
    /// Returns the next announcement. If there is none, the task has ended.
    fn next(&self) -> Option<Announcement> {
        let mut queue = self.0.lock();
        let next = queue.waiting.pop_front();
        queue.is_running = next.is_some();
        next
    }
}

impl Drop for PublishingTask {
    fn drop(&mut self) {
        // After its end, another task may be running.
        if std::thread::panicking() {
            self.0.lock().is_running = false;
        }
    }
}

/// A change whose events must be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announcement {
    /// The memories of a space with this version, or a later one.
    Memories(SpaceId, i64),
    /// This number of memories of a space.
    Forgotten(SpaceId, u64),
    /// The summaries that cover one of these messages.
    OutdatedSummaries(ConversationId, (i64, i64)),
    State(SpaceId),
}

impl MemoryAnnouncer {
    /// Creates the announcer of a node.
    pub fn new(
        db: Db,
        hub: Hub,
        (clock, shutdown): (Clock, Shutdown),
        models: ProviderFactory,
    ) -> Self {
        Self {
            loader: ChangeLoader { db, clock, models },
            hub,
            shutdown,
            queue: Arc::default(),
        }
    }

    /// Announces the memories that changed since a version of the space's memories, that version
    /// included.
    pub fn memories_changed(&self, space: SpaceId, since_version: i64) {
        self.enqueue(Announcement::Memories(space, since_version));
    }

    /// Announces that memories, and possibly summaries, are in no table any more. `count` is the number
    /// of memories that everyone in the space could see. Events that were loaded before are
    /// published before: otherwise a page would show these memories again.
    pub fn memories_forgotten(&self, space: SpaceId, count: u64) {
        self.enqueue(Announcement::Forgotten(space, count));
    }

    /// Announces that a summary was written or changed.
    pub fn summary_updated(&self, summary: &summary::Model) {
        self.hub.publish(change_loader::summary_event(summary));
    }

    /// Announces the summaries that a change of one of these messages has made out of date.
    pub fn summaries_outdated(&self, conversation: ConversationId, seqs: (i64, i64)) {
        self.enqueue(Announcement::OutdatedSummaries(conversation, seqs));
    }

    /// Announces the state of the background work on the memories of a space.
    pub fn state_changed(&self, space: SpaceId) {
        self.enqueue(Announcement::State(space));
    }

    fn enqueue(&self, new: Announcement) {
        let needs_task = self.queue.lock().add(new);
        if needs_task {
            self.shutdown.spawn(self.clone().publish_all());
        }
    }

    async fn publish_all(self) {
        let task = PublishingTask(Arc::clone(&self.queue));
        while let Some(next) = task.next() {
            match self.load(next).await {
                Ok(events) => events.into_iter().for_each(|it| self.hub.publish(it)),
                Err(error) => {
                    tracing::debug!(%error, "a change of the memory was not announced: {error}");
                }
            }
        }
    }

    async fn load(&self, announcement: Announcement) -> Result<Vec<Envelope>, DbErr> {
        match announcement {
            Announcement::Memories(space, since) => self.loader.load_memories(space, since).await,
            Announcement::Forgotten(space, count) => {
                let topic = Topic::Space(space);
                Ok(vec![change_loader::forgotten_event(topic, space, count)])
            }
            Announcement::OutdatedSummaries(conversation, seqs) => {
                let loader = &self.loader;
                loader.load_outdated_summaries(conversation, seqs).await
            }
            Announcement::State(space) => self.loader.load_state(space).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use base::ids::SpaceId;

    use super::{Announcement, AnnouncementQueue, PublishingTask, SharedQueue};

    #[test]
    fn what_was_forgotten_is_announced_each_time_and_after_earlier_changes() {
        let mut queue = AnnouncementQueue::default();
        let memories = Announcement::Memories(SpaceId(1), 7);
        let forgotten = Announcement::Forgotten(SpaceId(1), 3);

        let started = [memories, forgotten, memories, forgotten].map(|it| queue.add(it));

        assert_eq!(started, [true, false, false, false]);
        assert_eq!(queue.waiting, [memories, forgotten, forgotten]);
    }

    #[tokio::test]
    async fn another_task_is_started_after_one_that_panicked() {
        let queue = SharedQueue::default();
        let state = |n| Announcement::State(SpaceId(n));
        queue.lock().waiting.extend([state(1), state(2)]);
        queue.lock().is_running = true;
        let task = PublishingTask(queue.clone());

        let ended = tokio::spawn(async move {
            task.next();
            panic!("the load of an announcement panics");
        });

        assert!(ended.await.is_err());
        assert!(!queue.lock().is_running);
        assert_eq!(PublishingTask(queue.clone()).next(), Some(state(2)));
        assert!(queue.lock().is_running);
    }
}
