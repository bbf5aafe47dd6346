//! Converts errors of the run engine to API errors with a status, a code and a message.

use crate::runs::error::{ConversationReadError, EngineError};
use crate::runs::scheduling::command::CommandError;
use crate::web::error::ApiError;

/// Converts the error of an operation that changed nothing.
pub fn api_error(error: EngineError) -> ApiError {
    match error {
        EngineError::Rejected(refusal) => rejection_error(&refusal),
        EngineError::Conflict => ApiError::conflict(
            "already_finished",
            "Another request changed this first. Reload and try again.",
        ),
        EngineError::StorageFull(full) => ApiError::new(413, "storage_full", full.to_string()),
        EngineError::JobRunning => ApiError::conflict(
            "job_running",
            "Another of your branches is being created. Wait, or cancel it.",
        ),
        EngineError::Database(error) => error.into(),
        error @ EngineError::TaskEnded(_) => ApiError::internal(error),
    }
}

impl From<ConversationReadError> for ApiError {
    fn from(error: ConversationReadError) -> Self {
        match error {
            ConversationReadError::Database(error) => error.into(),
            error => Self::internal(error),
        }
    }
}

fn rejection_error(refusal: &CommandError) -> ApiError {
    let (status, code, message) = match refusal {
        CommandError::NotFound => return ApiError::not_found(),
        CommandError::Forbidden => return ApiError::forbidden("Your role is read-only."),
        CommandError::GenerationLocked => (
            423,
            "generation_locked",
            "A reply is being generated. Wait for it, or stop it first.",
        ),
        CommandError::MessageBeingWritten => (
            409,
            "message_being_written",
            "A reply is being written into this message. Wait for it, or stop it first.",
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
            "No character can speak. Add or unmute one.",
        ),
        CommandError::UnknownMention => {
            let message = "A mentioned member is not in this space.";
            return ApiError::invalid_value("mentions", message);
        }
        CommandError::UnknownReplyTarget => {
            let message = "The message to answer is not in this conversation, or was deleted.";
            return ApiError::invalid_value("reply_to_id", message);
        }
        CommandError::UnknownAudience => {
            let message = "Name at least one active member of this space.";
            return ApiError::invalid_value("audience", message);
        }
        CommandError::UnknownSpeaker => {
            let message = "Must be an active character of this space.";
            return ApiError::invalid_value("speaker_id", message);
        }
        CommandError::RollNotEditable => {
            return ApiError::forbidden("A roll of dice cannot be edited.");
        }
        CommandError::ClientIdReused => (
            422,
            "client_id_reused",
            "This `client_id` was already used for another message.",
        ),
        CommandError::UnknownAttachment => {
            let message = "A picture does not exist, is not yours, or was posted already.";
            return ApiError::invalid_value("attachment_ids", message);
        }
        CommandError::NothingShown => (
            422,
            "blank_message",
            "The text must not be blank: the message has no picture.",
        ),
        CommandError::UnknownPersona => {
            return ApiError::invalid_value("persona_id", "You have no such persona.");
        }
        CommandError::BlankMessage => (
            422,
            "blank_message",
            "Write a text after the name of the persona.",
        ),
        CommandError::NameTaken => {
            let message = "The name of this persona looks like that of another member.";
            return ApiError::conflict("name_taken_here", message).with_param("persona_id");
        }
        CommandError::EditConflict => (
            409,
            "edit_conflict",
            "This message was changed since you loaded it. Compare the texts and choose one.",
        ),
        // Operations continue in a branch in this case, so no endpoint returns the second variant.
        CommandError::ForkPoint | CommandError::BranchRequired(_) => {
            (409, "fork_point", "A branch starts from this message.")
        }
        CommandError::NoSuchSwipe => {
            let message = "This message has no swipe at that position.";
            return ApiError::invalid_value("position", message);
        }
        CommandError::SlowMode { remaining_ms } => {
            let seconds = u64::try_from(*remaining_ms)
                .unwrap_or_default()
                .div_ceil(1_000);
            let message = format!("This space is in slow mode. Wait {seconds} s, then try again.");
            let mut error = ApiError::new(429, "slow_mode", message);
            error.retry_after = Some(seconds);
            return error;
        }
        CommandError::NotOfPerson => {
            let message = "Only messages that people wrote can be out of character.";
            return ApiError::invalid_value("is_ooc", message);
        }
        CommandError::NothingToRegenerate => (
            422,
            "nothing_to_regenerate",
            "The last message was not generated by a model.",
        ),
        CommandError::NotAnAiMessage => (
            422,
            "not_an_ai_message",
            "Only a message of an AI can get a new version.",
        ),
        CommandError::InPlaceForbidden => {
            return ApiError::forbidden("Only moderators can retry a new version in place.");
        }
        CommandError::NothingToContinue => (
            422,
            "nothing_to_continue",
            "There is no message of a character to continue.",
        ),
        CommandError::NotTheNewest => (
            409,
            "not_the_newest",
            "Only the newest message can be continued, if a character wrote it.",
        ),
        CommandError::TooLong => (
            422,
            "too_long",
            "This message is as long as a message can be.",
        ),
        CommandError::StaleRound => (
            409,
            "stale_round",
            "Another round has started. Reload and try again.",
        ),
        CommandError::NotSchedulable => {
            let message = "The queue may contain only active characters of this space.";
            return ApiError::invalid_value("slots", message);
        }
        CommandError::NoRound => (409, "no_round", "No round is active."),
        CommandError::NothingPaused => (409, "nothing_paused", "Nothing is paused here."),
        CommandError::NothingToRetry => (409, "nothing_to_retry", "No reply can be retried."),
        CommandError::AlreadyFinished => (409, "already_finished", "This run has ended."),
    };
    ApiError::new(status, code, message)
}
