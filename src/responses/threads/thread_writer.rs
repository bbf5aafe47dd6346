//! Creates, changes and deletes threads and their messages. While a run of a thread is active, its
//! messages do not change.
//!
//! **Invariant:** each change locks the row of the thread first, and so does the creation of a run.

use base::clock::Timestamp;
use base::ids::UserId;
use responses_api::object_ids;
use responses_api::request::threads::thread_bodies::NewThread;
use responses_api::request::threads::thread_messages::NewThreadMessage;
use sea_orm::{ConnectionTrait, DbErr};
use serde_json::{Map, Value};

use crate::db::connect::Db;
use crate::responses::threads::thread_error::ThreadError;
use crate::responses::threads::thread_message::MessageDraft;
use crate::responses::threads::{thread, thread_message, thread_run};

/// Creates a thread of a user with its first messages.
///
/// # Errors
/// Returns the error of the database.
pub async fn create(
    db: &Db,
    user: UserId,
    new: NewThread,
    now: Timestamp,
) -> Result<thread::Model, DbErr> {
    db.write(move |tx| Box::pin(async move { create_in_transaction(tx, user, new, now).await }))
        .await
}

/// Does the same as [`create`] inside of a transaction.
///
/// # Errors
/// Returns the error of the database.
pub async fn create_in_transaction(
    tx: &impl ConnectionTrait,
    user: UserId,
    new: NewThread,
    now: Timestamp,
) -> Result<thread::Model, DbErr> {
    let drafts: Vec<MessageDraft> = new
        .messages
        .into_iter()
        .map(|message| MessageDraft::of_client(message, None))
        .collect();
    let row = thread::Model {
        id: object_ids::generate(object_ids::THREAD),
        user_id: user,
        metadata: new.metadata.into(),
        next_seq: i64::try_from(drafts.len()).unwrap_or(i64::MAX),
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    thread::insert(tx, row.clone()).await?;
    thread_message::insert(tx, &row.id, 0, drafts, now).await?;
    Ok(row)
}

/// Replaces the metadata of a thread, and returns the thread.
///
/// # Errors
/// Returns `NotFound` when the thread was deleted in the meantime.
pub async fn set_thread_metadata(
    db: &Db,
    thread: String,
    metadata: Map<String, Value>,
    now: Timestamp,
) -> Result<thread::Model, ThreadError> {
    let changed = db.write(move |tx| {
        Box::pin(async move { thread::set_metadata(tx, &thread, metadata.into(), now).await })
    });
    let changed: Result<Option<thread::Model>, DbErr> = changed.await;
    changed?.ok_or(ThreadError::NotFound)
}

/// Deletes a thread with its messages and runs. A run in progress is canceled.
///
/// # Errors
/// Returns the error of the database.
pub async fn delete_thread(db: &Db, thread: String, now: Timestamp) -> Result<(), DbErr> {
    let id = thread.clone();
    let deleted: Result<bool, DbErr> = db
        .write(move |tx| Box::pin(async move { thread::mark_deleted(tx, &id, now).await }))
        .await;
    deleted?;
    // In a transaction of its own, because a task locks its run first, and then the thread.
    db.write(move |tx| {
        Box::pin(async move { thread_run::request_cancel_of_thread(tx, &thread, now).await })
    })
    .await
}

/// Appends a message of a client to a thread.
///
/// # Errors
/// Returns `ActiveRun` while a run of the thread is active, and `NotFound` when the thread was
/// deleted in the meantime.
pub async fn append(
    db: &Db,
    thread: String,
    message: NewThreadMessage,
    now: Timestamp,
) -> Result<thread_message::Model, ThreadError> {
    let draft = MessageDraft::of_client(message, None);
    let appended = db.write(move |tx| {
        Box::pin(async move {
            lock_without_run(tx, &thread, now).await?;
            append_in_transaction(tx, &thread, vec![draft], now).await
        })
    });
    let mut appended: Vec<thread_message::Model> = appended.await?;
    appended.pop().ok_or(ThreadError::NotFound)
}

/// Appends messages to a thread inside of a transaction, whether a run is active or not, and returns
/// them.
///
/// # Errors
/// Returns `NotFound` when the thread was deleted in the meantime.
pub async fn append_in_transaction(
    tx: &impl ConnectionTrait,
    thread: &str,
    drafts: Vec<MessageDraft>,
    now: Timestamp,
) -> Result<Vec<thread_message::Model>, ThreadError> {
    let first_seq = thread::reserve_seqs(tx, thread, drafts.len(), now).await?;
    let first_seq = first_seq.ok_or(ThreadError::NotFound)?;
    Ok(thread_message::insert(tx, thread, first_seq, drafts, now).await?)
}

/// Replaces the metadata of a message, and returns the message.
///
/// # Errors
/// Returns `ActiveRun` while a run of the thread is active, and `NotFound` when the message was
/// deleted in the meantime.
pub async fn set_message_metadata(
    db: &Db,
    message: thread_message::Model,
    metadata: Map<String, Value>,
    now: Timestamp,
) -> Result<thread_message::Model, ThreadError> {
    db.write(move |tx| {
        Box::pin(async move {
            lock_without_run(tx, &message.thread_id, now).await?;
            let changed = thread_message::set_metadata(tx, &message.id, metadata.into()).await?;
            changed.ok_or(ThreadError::NotFound)
        })
    })
    .await
}

/// Deletes a message.
///
/// # Errors
/// Returns `ActiveRun` while a run of the thread is active, and `NotFound` when the message was
/// deleted in the meantime.
pub async fn delete_message(
    db: &Db,
    message: thread_message::Model,
    now: Timestamp,
) -> Result<(), ThreadError> {
    db.write(move |tx| {
        Box::pin(async move {
            lock_without_run(tx, &message.thread_id, now).await?;
            match thread_message::mark_deleted(tx, &message.id, now).await? {
                true => Ok(()),
                false => Err(ThreadError::NotFound),
            }
        })
    })
    .await
}

/// Locks a thread until the end of the transaction, and checks that none of its runs is active.
async fn lock_without_run(
    tx: &impl ConnectionTrait,
    thread: &str,
    now: Timestamp,
) -> Result<(), ThreadError> {
    let locked = thread::reserve_seqs(tx, thread, 0, now).await?;
    locked.ok_or(ThreadError::NotFound)?;
    match thread_run::find_active(tx, thread).await? {
        Some(run) => Err(ThreadError::ActiveRun(run)),
        None => Ok(()),
    }
}
