//! A space comes in: read from its file in a thread, written batch by batch where nobody looks, and
//! seen when it is whole.

use crate::accounts::user;
use crate::conversations::chat_import;
use crate::conversations::chat_import::ImportServices;
use crate::conversations::import_job;
use crate::conversations::import_writer::ChatImportError;
use crate::ids::ImportId;
use crate::ids::SpaceId;
use crate::transfers::assets;
use crate::transfers::document;
use crate::transfers::handover;
use crate::transfers::handover::Finished;
use crate::transfers::limits::Limits;
use crate::transfers::past_rows;
use crate::transfers::past_rows::Rounds;
use crate::transfers::rows;
use crate::transfers::rows::Known;
use crate::transfers::rows::Place;
use crate::transfers::unpack;
use crate::transfers::unpack::Head;
use crate::transfers::unpack::Step;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The reader waits when so many batches are not written yet.
const WAITING_BATCHES: usize = 2;

/// A space that is to be brought in, and whose it will be.
#[derive(Debug)]
pub struct Arrival {
    pub job: import_job::Model,
    pub owner: user::Model,
    /// How many bytes their cards may take; 0 is no limit.
    pub limit: u64,
    pub file: File,
    pub n_bytes: u64,
    pub limits: Limits,
}

/// Brings a space in, and tells in the row of the import how that ended.
///
/// # Errors
/// When nothing was brought in; nothing of it is left then.
pub async fn bring_in(
    tools: &ImportServices,
    arrival: Arrival,
) -> Result<SpaceId, ChatImportError> {
    let id = arrival.job.id;
    let result = read(tools, arrival).await;
    if let Err(error) = &result {
        chat_import::abort(tools, id, error).await;
    }
    result
}

/// What is there so far.
struct Furnished {
    head: Arc<Head>,
    known: Arc<Known>,
    /// The last message of each conversation, by its key.
    last: HashMap<i64, i64>,
    n_messages: i64,
    /// Of the conversation with this key, of which the past comes in.
    rounds: (i64, Rounds),
    assets: Option<assets::Arrived>,
}

async fn read(tools: &ImportServices, arrival: Arrival) -> Result<SpaceId, ChatImportError> {
    let hidden = arrival
        .job
        .hidden_space_id
        .ok_or(ChatImportError::Canceled)?;
    let (send, mut steps) = mpsc::channel(WAITING_BATCHES);
    let (file, n_bytes, limits) = (arrival.file, arrival.n_bytes, arrival.limits);
    // It ends by itself when nobody takes what it reads.
    let reading = tools.shutdown.main().spawn_blocking(move || {
        unpack::read(file, n_bytes, limits, &mut |step| {
            send.blocking_send(step).is_ok()
        })
    });
    let mut furnished = None;
    while let Some(step) = steps.recv().await {
        if tools.shutdown.draining.is_cancelled() {
            return Err(ChatImportError::Canceled);
        }
        match (step, &mut furnished) {
            (Step::Head(head), _) => {
                let head = Arc::from(head);
                let now = tools.clock.now();
                let known = rows::furnish(&tools.db, hidden, Arc::clone(&head), now).await?;
                furnished = Some(Furnished {
                    head,
                    known: Arc::new(known),
                    last: HashMap::new(),
                    n_messages: 0,
                    rounds: (0, Rounds::default()),
                    assets: None,
                });
            }
            (Step::Messages(key, batch), Some(there)) => {
                write(tools, arrival.job.id, there, key, batch).await?;
            }
            (Step::Past(key, batch), Some(there)) => {
                write_past(tools, arrival.job.id, hidden, there, key, batch).await?;
            }
            (Step::Asset, Some(there)) => beat(tools, arrival.job.id, there.n_messages).await?,
            (Step::Assets(all), Some(there)) => there.assets = Some(all),
            (_, None) => {}
        }
    }
    let ended = reading.await;
    let ended = ended.map_err(|_| std::io::Error::other("the reader ended"))?;
    ended.map_err(|error| ChatImportError::NotASpace(error.to_string()))?;
    let there = furnished.ok_or(ChatImportError::Canceled)?;
    let finished = Finished {
        import: arrival.job,
        hidden,
        owner: arrival.owner,
        limit: arrival.limit,
        head: there.head,
        known: there.known,
        assets: Arc::new(there.assets.ok_or(ChatImportError::Canceled)?),
        n_messages: there.n_messages,
        now: tools.clock.now(),
    };
    handover::finish(&tools.db, finished).await
}

/// Tells that it still goes on, and hears whether it was canceled.
async fn beat(
    tools: &ImportServices,
    import: ImportId,
    n_messages: i64,
) -> Result<(), ChatImportError> {
    let now = tools.clock.now();
    let goes_on = tools
        .db
        .write(move |tx| Box::pin(import_job::heartbeat(tx, import, 0, n_messages, now)))
        .await?;
    goes_on.then_some(()).ok_or(ChatImportError::Canceled)
}

async fn write(
    tools: &ImportServices,
    import: ImportId,
    there: &mut Furnished,
    key: i64,
    batch: Vec<document::Message>,
) -> Result<(), ChatImportError> {
    let conversations = &there.known.conversations;
    let parent = there.head.conversations.iter().find(|it| it.key == key);
    let parent = parent.and_then(|it| it.parent);
    there.n_messages += i64::try_from(batch.len()).unwrap_or(0);
    let place = Place {
        conversation: conversations[&key],
        parent: parent.and_then(|key| conversations.get(&key).copied()),
        after: there.last.get(&key).copied().unwrap_or(0),
        n_messages: there.n_messages,
        now: tools.clock.now(),
    };
    let known = Arc::clone(&there.known);
    let last = rows::write(&tools.db, import, place, known, batch).await?;
    tools.db.merge_segments().await;
    there.last.insert(key, last);
    Ok(())
}

async fn write_past(
    tools: &ImportServices,
    import: ImportId,
    hidden: SpaceId,
    there: &mut Furnished,
    key: i64,
    batch: Vec<document::Past>,
) -> Result<(), ChatImportError> {
    if there.rounds.0 != key {
        there.rounds = (key, Rounds::default());
    }
    let place = past_rows::Place {
        space: hidden,
        conversation: key,
        n_messages: there.n_messages,
        now: tools.clock.now(),
    };
    let known = Arc::clone(&there.known);
    let rounds = &mut there.rounds.1;
    past_rows::write(&tools.db, import, place, known, rounds, batch).await
}
