//! Heals what a dead node left behind, ends what has waited too long, and takes away what is old.
//! Runs on every node; two at once do no harm, since every move names the lease it saw.

use crate::db::connect::Backend;
use crate::responses::desk::Desk;
use crate::responses::ending;
use crate::responses::happening::How;
use crate::responses::parts::Parts;
use crate::responses::purge;
use crate::responses::queue;
use crate::responses::response;
use crate::responses::turn;
use crate::responses::worker;
use sea_orm::DbErr;
use std::time::Duration;
use tokio::time::Instant;

/// Who has waited so long for a place gets none.
const WAITS_AT_MOST_MS: i64 = 60 * 60 * 1_000;

/// How often the old is looked for, and, where no other node can die, anything at all.
const TIDY_EVERY: Duration = Duration::from_secs(60);

impl Desk {
    /// Heals what the last process left, then works, beats and sweeps until the node closes.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn start(&self) -> Result<(), DbErr> {
        let parts = &self.parts;
        let after = match parts.db.backend() {
            // One process owns it: whatever runs there has nobody who writes it.
            Backend::Sqlite => None,
            Backend::Postgres => Some(parts.settings.stale_after),
        };
        heal(parts, after).await?;
        let shutdown = &parts.shutdown;
        shutdown.spawn(worker::keep_beating(parts.clone()));
        shutdown.spawn(keep_sweeping(parts.clone()));
        if parts.settings.works {
            shutdown.spawn(worker::keep_working(parts.clone()));
        }
        Ok(())
    }

    /// Lets turns end by themselves for `grace`, then ends them. Returns when all have ended.
    pub async fn drain(&self, grace: Duration) {
        let held = &self.parts.held;
        let _ = tokio::time::timeout(grace, held.none_left()).await;
        // One may be on its way still: claimed, and not held yet.
        held.close();
        if tokio::time::timeout(Duration::from_secs(5), held.none_left())
            .await
            .is_err()
        {
            tracing::warn!("the database takes long to take the ends of responses");
        }
    }
}

/// Sweeps until the node has put everything down.
async fn keep_sweeping(parts: Parts) {
    let settings = parts.settings;
    let every = match parts.db.backend() {
        Backend::Sqlite => TIDY_EVERY,
        Backend::Postgres => settings.sweep_every,
    };
    let mut tick = tokio::time::interval(every);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut last, mut judges_from) = (Instant::now(), Instant::now());
    let mut tidied = Instant::now();
    loop {
        tokio::select! {
            () = parts.shutdown.stopping.cancelled() => return,
            _ = tick.tick() => {}
        }
        // Who stood still does not judge others until the living have beaten again.
        if last.elapsed() > every + settings.heartbeat {
            judges_from = Instant::now() + settings.stale_after;
        }
        last = Instant::now();
        if Instant::now() >= judges_from
            && let Err(error) = heal(&parts, Some(settings.stale_after)).await
        {
            tracing::warn!(%error, "responses could not be healed: {error}");
            judges_from = Instant::now() + settings.stale_after; // nor could anybody beat
        }
        // The dead are healed also where the old cannot be taken away.
        if tidied.elapsed() >= TIDY_EVERY.min(every) {
            tidied = Instant::now();
            if let Err(error) = tidy(&parts).await {
                tracing::warn!(%error, "old responses could not be taken away: {error}");
            }
        }
    }
}

/// Ends or queues again what nobody has beaten for since so long; `None`: however short.
///
/// # Errors
/// When the database does not answer.
pub async fn heal(parts: &Parts, after: Option<Duration>) -> Result<(), DbErr> {
    let (now, dialect) = (parts.clock.now(), parts.db.backend());
    for row in queue::silent(parts.db.reader(), now, after, dialect).await? {
        // What this node itself works on lives.
        if !parts.held.has(&row.id, row.lease) {
            tracing::warn!(response.id = %row.id, "response {} was abandoned by its node", row.id);
            heal_one(parts, row).await?;
        }
    }
    Ok(())
}

async fn heal_one(parts: &Parts, row: response::Model) -> Result<(), DbErr> {
    let now = parts.clock.now();
    if row.cancel_requested_at.is_some() {
        ending::conclude(&parts.db, row, How::Cancelled, now).await?;
        return Ok(());
    }
    let may_go_back = row.background && row.attempt < queue::MAX_ATTEMPTS;
    if may_go_back && !ending::fold_of(parts.db.reader(), &row).await?.has_output() {
        let (id, lease) = (row.id, row.lease);
        let back: Result<bool, DbErr> = parts
            .db
            .write(move |tx| Box::pin(async move { queue::hand_back(tx, &id, lease).await }))
            .await;
        back?;
        parts.bell.notify_one();
        return Ok(());
    }
    let how = How::Failed(turn::lost());
    ending::conclude(&parts.db, row, how, now).await?;
    Ok(())
}

/// Ends what has waited too long, and takes away what is old.
///
/// # Errors
/// When the database does not answer.
pub async fn tidy(parts: &Parts) -> Result<(), DbErr> {
    let now = parts.clock.now();
    let long_ago = now.plus_ms(-WAITS_AT_MOST_MS);
    for row in queue::queued_since(parts.db.reader(), long_ago).await? {
        ending::conclude(&parts.db, row, How::Incomplete("expired"), now).await?;
    }
    purge::old_logs(&parts.db, now).await?;
    if let Some(kept_for) = parts.settings.retention {
        purge::expired(&parts.db, now, kept_for).await?;
    }
    purge::left_conversations(&parts.db).await
}
