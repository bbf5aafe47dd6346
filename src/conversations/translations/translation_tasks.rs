//! Makes translations in background tasks: at most one task of this node for each translation, for all who
//! wait for it, and at most one call of the model on any node.
//!
//! **Invariant:** everyone who was promised a translation receives an event: the text, or why there is
//! none. A failure is not stored, so the next request tries again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::clock::Clock;
use base::ids::UserId;
use base::shutdown::Shutdown;
use parking_lot::Mutex;
use realtime::envelope::{Envelope, Event};
use realtime::hub::Hub;
use realtime::topic::Topic;
use sea_orm::DbErr;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::conversations::display::markdown::Markdown;
use crate::conversations::translations::message_translation;
use crate::conversations::translations::message_translation::{
    NewTranslation, TranslationClaim, TranslationKey,
};
use crate::conversations::translations::translation_events::{
    MessageTranslated, TranslationFailed, TranslationView,
};
use crate::conversations::translations::translation_model::{
    TranslationError, TranslationModel, TranslationSource,
};
use crate::db::backend::StaleAfter;
use crate::db::connect::Db;

/// How often a task checks a translation that another node makes.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Makes translations. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct TranslationTasks {
    services: Arc<TranslationServices>,
    running: RunningTasks,
}

/// What the tasks need.
pub struct TranslationServices {
    pub db: Db,
    pub hub: Hub,
    pub clock: Clock,
    pub shutdown: Shutdown,
    pub markdown: Arc<Markdown>,
    pub model: TranslationModel,
    /// How often a lease is renewed.
    pub heartbeat: Duration,
    /// The age at which a lease that was not renewed has expired.
    pub stale_after: Duration,
}

/// The tasks of this node. An entry is removed when its task ends.
type RunningTasks = Arc<Mutex<HashMap<TranslationKey, RunningTask>>>;

struct RunningTask {
    outcome: watch::Sender<Option<TranslationOutcome>>,
    /// Users who receive an event at the end.
    users: Vec<UserId>,
}

/// The end of a task.
pub type TranslationOutcome = Result<Arc<TranslationView>, TranslationFailure>;

/// Why there is no translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslationFailure {
    /// The model has returned no text.
    ModelFailed,
    TokenLimitReached,
    /// The message was changed or deleted in the meantime.
    MessageChanged,
    /// The server stops, or the database failed.
    Unavailable,
}

impl TranslationFailure {
    /// Returns the code for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::ModelFailed => "upstream_error",
            Self::TokenLimitReached => "token_limit_exceeded",
            Self::MessageChanged => "message_changed",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A translation that is being made.
pub struct PendingTranslation {
    key: TranslationKey,
    outcome: watch::Receiver<Option<TranslationOutcome>>,
    running: RunningTasks,
}

impl PendingTranslation {
    /// Waits for the end of the task; `None` if that is later.
    pub async fn wait(&mut self, at_most: Duration) -> Option<TranslationOutcome> {
        let ended = timeout(at_most, self.outcome.wait_for(Option::is_some)).await;
        match ended {
            Ok(Ok(outcome)) => outcome.clone(),
            // The sender sends an outcome before it is dropped.
            Ok(Err(_)) => Some(Err(TranslationFailure::Unavailable)),
            Err(_) => None,
        }
    }

    /// Publishes the end of the task to this user. Returns the outcome if the task has ended already.
    pub fn announce_to(self, user: UserId) -> Option<TranslationOutcome> {
        let mut running = self.running.lock();
        // An outcome is set before its entry is removed, under this lock.
        if let Some(outcome) = self.outcome.borrow().clone() {
            return Some(outcome);
        }
        match running.get_mut(&self.key) {
            Some(task) => {
                if !task.users.contains(&user) {
                    task.users.push(user);
                }
                None
            }
            None => Some(Err(TranslationFailure::Unavailable)),
        }
    }
}

impl TranslationTasks {
    /// Creates the tasks of a node.
    pub fn new(services: TranslationServices) -> Self {
        Self {
            services: Arc::new(services),
            running: RunningTasks::default(),
        }
    }

    /// Returns a stored translation with its HTML.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn find(&self, key: &TranslationKey) -> Result<Option<Arc<TranslationView>>, DbErr> {
        let text = message_translation::find_text(self.services.db.reader(), key).await?;
        Ok(match text {
            Some(text) => self.services.render(key, text).await,
            None => None,
        })
    }

    /// Starts a task that makes a translation, or joins the one that runs.
    pub fn start(&self, key: TranslationKey, source: TranslationSource) -> PendingTranslation {
        let mut running = self.running.lock();
        let outcome = match running.get(&key) {
            Some(task) => task.outcome.subscribe(),
            None => {
                let (sender, receiver) = watch::channel(None);
                let task = RunningTask {
                    outcome: sender,
                    users: Vec::new(),
                };
                running.insert(key.clone(), task);
                let end = TaskEnd {
                    key: key.clone(),
                    outcome: Err(TranslationFailure::Unavailable),
                    running: self.running.clone(),
                    hub: self.services.hub.clone(),
                };
                let services = self.services.clone();
                let work = async move { services.make_and_end(source, end).await };
                self.services.shutdown.spawn(work);
                receiver
            }
        };
        PendingTranslation {
            key,
            outcome,
            running: self.running.clone(),
        }
    }

    /// Returns how many tasks run on this node.
    pub fn n_running(&self) -> usize {
        self.running.lock().len()
    }
}

/// Ends a task when it is dropped, also if the task panics.
struct TaskEnd {
    key: TranslationKey,
    outcome: TranslationOutcome,
    running: RunningTasks,
    hub: Hub,
}

impl Drop for TaskEnd {
    fn drop(&mut self) {
        let users = {
            let mut running = self.running.lock();
            let task = running.remove(&self.key);
            task.map(|it| {
                it.outcome.send_replace(Some(self.outcome.clone()));
                it.users
            })
        };
        for user in users.unwrap_or_default() {
            match &self.outcome {
                Ok(view) => self.publish(user, &MessageTranslated::from(view.as_ref())),
                Err(failure) => self.publish(
                    user,
                    &TranslationFailed {
                        message_id: self.key.message,
                        version: self.key.version,
                        language: self.key.language.as_str(),
                        code: failure.code(),
                    },
                ),
            }
        }
    }
}

impl TaskEnd {
    fn publish(&self, user: UserId, event: &impl Event) {
        self.hub.publish(Envelope::plain(Topic::User(user), event));
    }
}

impl TranslationServices {
    async fn make_and_end(&self, source: TranslationSource, mut end: TaskEnd) {
        let cancel = self.shutdown.releasing.child_token();
        let made = self.make(&end.key, &source, &cancel).await;
        end.outcome = match made {
            Ok(text) => {
                let view = self.render(&end.key, text).await;
                view.ok_or(TranslationFailure::Unavailable)
            }
            Err(failure) => Err(failure),
        };
    }

    /// Returns the text of a translation: makes it, or waits for the node that makes it.
    async fn make(
        &self,
        key: &TranslationKey,
        source: &TranslationSource,
        cancel: &CancellationToken,
    ) -> Result<String, TranslationFailure> {
        loop {
            match self.claim(key).await.map_err(unavailable)? {
                TranslationClaim::Stored(text) => return Ok(text),
                TranslationClaim::Outdated => return Err(TranslationFailure::MessageChanged),
                TranslationClaim::Claimed(lease) => {
                    return self.translate(key, lease, source, cancel).await;
                }
                TranslationClaim::Busy => tokio::select! {
                    () = cancel.cancelled() => return Err(TranslationFailure::Unavailable),
                    () = sleep(POLL_INTERVAL) => {}
                },
            }
        }
    }

    /// Makes a translation under a lease.
    async fn translate(
        &self,
        key: &TranslationKey,
        lease: i64,
        source: &TranslationSource,
        cancel: &CancellationToken,
    ) -> Result<String, TranslationFailure> {
        let mut is_lost = false;
        let made = {
            let call = self.model.translate(source, cancel);
            tokio::pin!(call);
            loop {
                tokio::select! {
                    made = &mut call => break made,
                    () = sleep(self.heartbeat) => {
                        if matches!(self.renew(key, lease).await, Ok(false)) {
                            is_lost = true;
                            cancel.cancel();
                        }
                    }
                }
            }
        };
        let failure = match made {
            Ok(new) => {
                let text = new.text.clone();
                let stored = self.finish(key, lease, new).await.map_err(unavailable)?;
                return match stored {
                    true => Ok(text),
                    false => Err(TranslationFailure::MessageChanged),
                };
            }
            Err(_) if is_lost => return Err(TranslationFailure::MessageChanged),
            Err(TranslationError::Failed(reason)) => {
                tracing::debug!(space.id = %source.space, error = reason, "a translation failed");
                TranslationFailure::ModelFailed
            }
            Err(TranslationError::TokenLimit) => TranslationFailure::TokenLimitReached,
            Err(TranslationError::Canceled) => TranslationFailure::Unavailable,
            Err(TranslationError::Database(error)) => unavailable(error),
        };
        // If this fails, the lease expires.
        self.release(key, lease).await.map_err(unavailable)?;
        Err(failure)
    }

    async fn claim(&self, key: &TranslationKey) -> Result<TranslationClaim, DbErr> {
        let (key, now, stale) = (key.clone(), self.clock.now(), self.stale());
        let claiming = self.db.write(move |tx| {
            Box::pin(async move { message_translation::claim(tx, &key, now, &stale).await })
        });
        claiming.await
    }

    async fn renew(&self, key: &TranslationKey, lease: i64) -> Result<bool, DbErr> {
        let (key, now, stale) = (key.clone(), self.clock.now(), self.stale());
        let renewing = self.db.write(move |tx| {
            Box::pin(async move { message_translation::renew(tx, &key, lease, now, &stale).await })
        });
        renewing.await
    }

    async fn finish(
        &self,
        key: &TranslationKey,
        lease: i64,
        new: NewTranslation,
    ) -> Result<bool, DbErr> {
        let (key, now) = (key.clone(), self.clock.now());
        let finishing = self.db.write(move |tx| {
            Box::pin(async move { message_translation::finish(tx, &key, lease, new, now).await })
        });
        finishing.await
    }

    async fn release(&self, key: &TranslationKey, lease: i64) -> Result<(), DbErr> {
        let key = key.clone();
        let releasing = self.db.write(move |tx| {
            Box::pin(async move { message_translation::release(tx, &key, lease).await })
        });
        releasing.await
    }

    fn stale(&self) -> StaleAfter {
        StaleAfter {
            after_ms: i64::try_from(self.stale_after.as_millis()).unwrap_or(i64::MAX),
            backend: self.db.backend(),
        }
    }

    /// Adds the HTML, which is rendered in a blocking task; `None` if that was ended by the shutdown.
    async fn render(&self, key: &TranslationKey, text: String) -> Option<Arc<TranslationView>> {
        let (key, markdown) = (key.clone(), self.markdown.clone());
        let rendering = self
            .shutdown
            .main()
            .spawn_blocking(move || TranslationView {
                message_id: key.message,
                version: key.version,
                language: key.language.to_string(),
                html: markdown.render(&text),
                text,
            });
        rendering.await.ok().map(Arc::new)
    }
}

fn unavailable(error: DbErr) -> TranslationFailure {
    tracing::warn!(%error, "a translation was not stored: {error}");
    TranslationFailure::Unavailable
}
