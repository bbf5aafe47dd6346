//! Runs imports as leased jobs in the process that received the file: starts their tasks, renews
//! their leases, and ends imports whose process died.

use std::time::Duration;

use base::clock::Clock;
use base::ids::ImportId;
use base::shutdown::Shutdown;
use leased_jobs::clock_jump_guard::ClockJumpGuard;
use leased_jobs::heartbeat::run_heartbeat;
use leased_jobs::job::{Job, JobFailure, JobTiming, RenewedLease};
use leased_jobs::lease::{ActiveLeases, CancelHandle, Lease};
use leased_jobs::recovery::run_recovery;
use sea_orm::DbErr;
use tokio::time::Instant;

use crate::conversations::chats::import_job;
use crate::db::backend;
use crate::db::backend::Backend;
use crate::db::connect::Db;

/// After this time without a heartbeat, an import's process is considered dead. It is longer than
/// the last transaction of an import, which locks the row that the heartbeat updates.
const STALE_AFTER: Duration = Duration::from_secs(10 * 60);
/// The interval at which the recovery searches for imports of dead processes.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(60);
/// An import has one process, and thus one lease.
const LEASE: i64 = 1;

/// The services that imports use. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct ImportServices {
    pub db: Db,
    pub clock: Clock,
    pub shutdown: Shutdown,
    /// The imports of this process.
    leases: ActiveLeases<ImportId>,
    heartbeat: Duration,
}

impl ImportServices {
    /// Builds the services; imports renew their leases at the interval `heartbeat`.
    pub fn new(db: Db, clock: Clock, shutdown: Shutdown, heartbeat: Duration) -> Self {
        Self {
            db,
            clock,
            shutdown,
            leases: ActiveLeases::default(),
            heartbeat,
        }
    }

    /// Ends the imports of the previous process, and deletes the rows of imports that ended long
    /// ago.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn recover_at_start(&self) -> Result<(), DbErr> {
        // An SQLite file belongs to one process, so no import runs at its start. On PostgreSQL other
        // nodes may be importing.
        let silent_for = match self.db.backend() {
            Backend::Sqlite => Duration::ZERO,
            Backend::Postgres => STALE_AFTER,
        };
        self.end_abandoned(silent_for).await?;
        import_job::delete_expired(&self.db, self.clock.now()).await
    }

    /// Starts the heartbeat and the recovery, which run until the node closes.
    pub fn start(&self) {
        let stopping = &self.shutdown.stopping;
        self.shutdown
            .spawn(run_heartbeat(self.clone(), stopping.clone()));
        self.shutdown
            .spawn(run_recovery(self.clone(), stopping.clone()));
    }

    /// Runs an import in a task that holds its lease until it ends or panics.
    pub fn spawn(&self, id: ImportId, import: impl Future<Output = ()> + Send + 'static) {
        let cancel = CancelHandle::child_of(&self.shutdown.draining);
        let guard = self.leases.hold(Lease::new(id, LEASE, cancel, ()));
        self.shutdown.spawn(async move {
            let _guard = guard;
            import.await;
        });
    }

    /// Returns whether an import must end: this node shuts down, or the import has ended already.
    pub fn is_canceled(&self, id: ImportId) -> bool {
        let lease = self.leases.find(&id);
        lease.is_none_or(|lease| lease.cancel.token.is_cancelled())
    }

    /// Waits until the canceled imports of this process have recorded their end, or for 5 s.
    pub async fn drain(&self) {
        let leases = &self.leases;
        if !leases.drain(Duration::ZERO, |_| leases.close()).await {
            tracing::warn!("imports did not end within 5 s of cancellation");
        }
    }

    async fn end_abandoned(&self, silent_for: Duration) -> Result<(), DbErr> {
        let stale_after_ms = i64::try_from(silent_for.as_millis()).unwrap_or(i64::MAX);
        let held = self.leases.list().into_iter().map(|lease| lease.id);
        let now = self.clock.now();
        import_job::end_abandoned(&self.db, stale_after_ms, held.collect(), now).await
    }
}

impl Job for ImportServices {
    type Id = ImportId;
    type Data = ();
    type Error = DbErr;

    fn leases(&self) -> &ActiveLeases<ImportId> {
        &self.leases
    }

    fn timing(&self) -> JobTiming {
        JobTiming {
            heartbeat: self.heartbeat,
            stale_after: STALE_AFTER,
            // The next batch detects that the import has ended.
            gives_up_stale_leases: false,
            poll_interval: None,
            recovery_interval: RECOVERY_INTERVAL,
        }
    }

    fn report(&self, failure: JobFailure<'_, DbErr>) {
        match failure {
            JobFailure::Heartbeat(error) | JobFailure::Claim(error) => {
                tracing::warn!(%error, "failed to renew import heartbeats; retrying: {error}");
            }
            JobFailure::HeartbeatTimeout => tracing::warn!("import heartbeats timed out; retrying"),
            JobFailure::Recovery(error) => {
                tracing::warn!(%error, "failed to end the imports that stopped; retrying: {error}");
            }
        }
    }

    async fn renew(&self, held: &[ImportId]) -> Result<Vec<RenewedLease<ImportId>>, DbErr> {
        // Not on the heartbeat connection: a locked row would delay the heartbeats of runs there.
        let (held, now, backend) = (held.to_vec(), self.clock.now(), self.db.backend());
        let renewed = self.db.write(move |tx| {
            Box::pin(async move { import_job::heartbeat(tx, &held, now, backend).await })
        });
        let renewed: Result<Vec<import_job::Model>, DbErr> = renewed.await;
        let imports = renewed?.into_iter();
        let renewed = imports.map(|import| RenewedLease {
            id: import.id,
            number: LEASE,
            is_cancel_requested: false,
        });
        Ok(renewed.collect())
    }

    async fn recover(&mut self, guard: &mut ClockJumpGuard) -> Result<(), DbErr> {
        let (db, now) = (self.db.reader(), self.clock.now());
        let reading = backend::read_lease_time(db, self.db.backend(), now).await?;
        if guard.can_recover(Instant::now(), reading.map(|at| at.0)) {
            self.end_abandoned(STALE_AFTER).await?;
        }
        Ok(())
    }
}
