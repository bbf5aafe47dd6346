//! Converts errors of the engine to API errors.

use crate::http::error::ApiError;
use crate::runs::command::CommandError;
use crate::runs::error::EngineError;

/// Converts the error of an operation that changed nothing.
pub fn api_error(error: EngineError) -> ApiError {
    match error {
        EngineError::Rejected(refusal) => rejection_error(&refusal),
        EngineError::Conflict => ApiError::conflict(
            "already_finished",
            "Somebody else was a moment faster. Look again.",
        ),
        EngineError::StorageFull(full) => ApiError::new(413, "storage_full", full.to_string()),
        EngineError::JobRunning => ApiError::conflict(
            "job_running",
            "Another branch of yours is being made. Wait for it, or cancel it.",
        ),
        EngineError::Database(error) => error.into(),
    }
}

fn rejection_error(refusal: &CommandError) -> ApiError {
    let (status, code, message) = match refusal {
        CommandError::NotFound => return ApiError::not_found(),
        CommandError::Forbidden => return ApiError::forbidden("This seat only reads."),
        CommandError::GenerationLocked => (
            423,
            "generation_locked",
            "A reply is being written. Wait for it, or stop it first.",
        ),
        CommandError::MessageBeingWritten => (
            409,
            "message_being_written",
            "This message is being written anew. Wait for it, or stop it first.",
        ),
        CommandError::CopilotActive => (
            409,
            "copilot_active",
            "The copilot speaks for you. Turn it off to write yourself.",
        ),
        CommandError::SpaceArchived => (403, "space_archived", "This space is archived."),
        CommandError::NoSpeaker => (
            422,
            "no_speaker",
            "Nobody can speak: seat or unmute a character.",
        ),
        CommandError::UnknownMention => {
            let message = "A mention names somebody who is not here.";
            return ApiError::invalid_value("mentions", message);
        }
        CommandError::ClientIdReused => (
            422,
            "client_id_reused",
            "This client_id was used for another text.",
        ),
        CommandError::EditConflict => (
            409,
            "edit_conflict",
            "This message has been changed since you opened it. Compare the texts and choose one.",
        ),
        CommandError::NotTail => (409, "not_tail", "Only the last message can be changed."),
        // Operations continue in a branch in this case, so no endpoint returns the second variant.
        CommandError::ForkPoint | CommandError::BranchRequired(_) => {
            (409, "fork_point", "A branch hangs on this message.")
        }
        CommandError::NoSuchSwipe => {
            let message = "This message has no text at that position.";
            return ApiError::invalid_value("position", message);
        }
        CommandError::NothingToRegenerate => (
            422,
            "nothing_to_regenerate",
            "The last message is not one that an AI wrote.",
        ),
        CommandError::StaleRound => (
            409,
            "stale_round",
            "Somebody else's turns are under way by now. Look again.",
        ),
        CommandError::NotSchedulable => {
            let message = "Only active characters of this space can stand in the queue.";
            return ApiError::invalid_value("slots", message);
        }
        CommandError::NoRound => (409, "no_round", "Nobody's turn is under way."),
        CommandError::NothingPaused => (409, "nothing_paused", "Nothing is paused here."),
        CommandError::NothingToRetry => (409, "nothing_to_retry", "There is nothing to try again."),
        CommandError::AlreadyFinished => (409, "already_finished", "This run has ended."),
    };
    ApiError::new(status, code, message)
}
