//! Works on background responses: claims those that wait, fair among their owners, and takes their
//! turns.

use crate::db::connect::Backend;
use crate::responses::compaction;
use crate::responses::ending;
use crate::responses::happening::Ending;
use crate::responses::happening::Happening;
use crate::responses::happening::How;
use crate::responses::history;
use crate::responses::item;
use crate::responses::item::Side;
use crate::responses::parts::Parts;
use crate::responses::places::Full;
use crate::responses::places::Place;
use crate::responses::preparation;
use crate::responses::preparation::Prepared;
use crate::responses::queue;
use crate::responses::recorder::Recorder;
use crate::responses::refusal::Refusal;
use crate::responses::remote;
use crate::responses::response;
use crate::responses::response::Status;
use crate::responses::stop::Stop;
use crate::responses::stop::Why;
use crate::responses::turn;
use crate::responses::turn::Left;
use crate::responses::turn::Stage;
use sea_orm::DbErr;
use std::time::Duration;

/// The net under the bell: what another node queued, or a ring that was lost.
const SLOW_POLL: Duration = Duration::from_secs(1);

/// After a look that failed.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

/// Works until the node drains.
pub async fn keep_working(parts: Parts) {
    let draining = parts.shutdown.draining.clone();
    loop {
        let mut wait = match parts.db.backend() {
            // Nobody else queues anything there.
            Backend::Sqlite => None,
            Backend::Postgres => Some(SLOW_POLL),
        };
        if let Err(error) = look(&parts).await {
            tracing::warn!(%error, "queued responses could not be looked up, trying again: {error}");
            wait = Some(AFTER_TROUBLE);
        }
        let pause = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = draining.cancelled() => return,
            () = parts.bell.notified() => {}
            () = pause => {}
        }
    }
}

/// Claims what waits and fits. Who has the fewest places is asked first.
async fn look(parts: &Parts) -> Result<(), DbErr> {
    loop {
        let mut owners = queue::waiting_owners(parts.db.reader()).await?;
        owners.sort_by_key(|it| parts.background.of(*it));
        let mut has_begun = false;
        for owner in owners {
            if parts.shutdown.draining.is_cancelled() {
                return Ok(());
            }
            let place = match parts.background.take(owner) {
                Ok(place) => place,
                Err(Full::House) => return Ok(()),
                Err(Full::Share) => continue,
            };
            let Some(next) = queue::next_of(parts.db.reader(), owner).await? else {
                continue;
            };
            // Lost to another node: the next look sees what is left.
            has_begun = true;
            if let Some(row) = claim(parts, next).await? {
                parts.shutdown.spawn(execute(parts.clone(), row, place));
            }
        }
        if !has_begun {
            return Ok(());
        }
    }
}

async fn claim(parts: &Parts, id: String) -> Result<Option<response::Model>, DbErr> {
    let (node, now, dialect) = (parts.node.clone(), parts.clock.now(), parts.db.backend());
    parts
        .db
        .write(move |tx| Box::pin(async move { queue::claim(tx, &id, &node, now, dialect).await }))
        .await
}

async fn execute(parts: Parts, row: response::Model, place: Place) {
    let stop = Stop::default();
    let hold = parts.held.hold(&row.id, &stop, row.lease);
    let done = take(&parts, &row, &stop).await;
    if let Err(error) = done {
        // Its heartbeat ends here; the sweep heals the row.
        tracing::error!(response.id = %row.id, %error, "response {} is left to the sweep: {error}", row.id);
    }
    drop((place, hold));
    parts.bell.notify_one();
}

async fn take(parts: &Parts, row: &response::Model, stop: &Stop) -> Result<(), DbErr> {
    let fold = ending::fold_of(parts.db.reader(), row).await?;
    let stage = Stage {
        fold,
        recorder: Some(Recorder::new(parts.db.clone(), row)),
        reader: None,
        was_let_go: false,
        is_background: true,
        was_told: true,
    };
    let prepared = match prepare(parts, row).await {
        Ok(prepared) => prepared,
        Err(Refusal::Database(error)) => return Err(error),
        Err(refusal) => {
            fail(parts, stage, &refusal).await;
            return Ok(());
        }
    };
    let turn = prepared.turn(parts, stop.clone(), stage);
    if let Left::Untouched = turn::take(turn).await {
        give_back(parts, row).await?;
    }
    Ok(())
}

async fn prepare(parts: &Parts, row: &response::Model) -> Result<Prepared, Refusal> {
    let db = parts.db.reader();
    let (previous, conversation) = (
        row.previous_response_id.as_deref(),
        row.api_conversation_id.as_deref(),
    );
    let prior = history::items(db, previous, conversation).await?;
    let input = item::of_response(db, &row.id, Side::Input).await?;
    let input = input.into_iter().map(|it| it.payload).collect();
    let sealer = &parts.models.cipher;
    let (prior, input) = compaction::opened(sealer, row.user_id, prior, input)?;
    let mut kept = row.request.clone();
    kept.tools.secrets = remote::open(sealer, &row.id, row.sealed_secrets.as_deref())?;
    let errand = remote::plan(parts, row.user_id, &kept.tools, &prior, &input)?;
    let answers = preparation::find(parts, row.user_id, &row.model).await?;
    let mut prepared = preparation::prepare(parts, answers, &kept, prior, input).await?;
    prepared.errand = errand;
    Ok(prepared)
}

/// What was right when it was queued is so no more.
async fn fail(parts: &Parts, mut stage: Stage, refusal: &Refusal) {
    let how = How::Failed(turn::gone(refusal));
    let (usage, at) = (None, parts.clock.now());
    let mut events = Vec::new();
    // A second attempt has told that it began.
    if stage.fold.standing().status == Status::Queued {
        events.extend(stage.fold.apply(Happening::Began));
    }
    events.extend(
        stage
            .fold
            .apply(Happening::Ended(Ending { how, usage, at })),
    );
    if let Some(recorder) = stage.recorder {
        // Lost: somebody else has ended it.
        let standing = stage.fold.standing();
        let _ = recorder.finish(stage.fold.items(), &events, standing).await;
    }
}

/// Lets another node take it, unless it was tried often enough.
async fn give_back(parts: &Parts, row: &response::Model) -> Result<(), DbErr> {
    if row.attempt >= queue::MAX_ATTEMPTS {
        let (how, now) = (How::Failed(turn::lost()), parts.clock.now());
        ending::conclude(&parts.db, row.clone(), how, now).await?;
        return Ok(());
    }
    let (id, lease) = (row.id.clone(), row.lease);
    let given: Result<bool, DbErr> = parts
        .db
        .write(move |tx| Box::pin(async move { queue::hand_back(tx, &id, lease).await }))
        .await;
    given.map(drop)
}

/// Beats for every turn with a row until the node has put everything down.
pub async fn keep_beating(parts: Parts) {
    let mut tick = tokio::time::interval(parts.settings.heartbeat);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = parts.shutdown.stopping.cancelled() => return,
            _ = tick.tick() => {}
        }
        if let Err(error) = beat(&parts).await {
            tracing::warn!(%error, "the heartbeat of responses failed, it is tried again: {error}");
        }
    }
}

async fn beat(parts: &Parts) -> Result<(), DbErr> {
    let held = parts.held.stored();
    if held.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = held.iter().map(|it| it.0.clone()).collect();
    let (now, dialect) = (parts.clock.now(), parts.db.backend());
    let beating = queue::beat(
        parts.db.heartbeat_connection(),
        &parts.node,
        &ids,
        now,
        dialect,
    );
    let alive = parts.db.run_observed(beating).await?;
    for (id, lease) in held {
        let beaten = alive.iter().find(|it| it.id == id && it.lease == lease);
        match beaten {
            None => parts.held.end(&id, Why::Lost),
            Some(it) if it.is_asked_to_end => parts.held.end(&id, Why::Asked),
            Some(_) => {}
        }
    }
    Ok(())
}
