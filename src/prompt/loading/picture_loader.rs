//! Adds the pictures of messages to the history of a prompt, and loads the bytes of those that are sent.

use std::collections::HashMap;
use std::sync::Arc;

use base::ids::AttachmentId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use llm::tool::Attachment;
use sea_orm::{ConnectionTrait, DbErr};

use crate::attachments::{attachment, picture_text};
use crate::characters::asset;
use crate::prompt::blocks::HistoryPicture;
use crate::prompt::builder::BuiltPrompt;
use crate::prompt::context::HistoryLine;
use crate::prompt::loading::history_query::HistoryMessage;

/// Adds their pictures to `lines`, which are the lines of `history`.
///
/// # Errors
/// Returns the database error if the query fails.
pub(super) async fn add(
    db: &impl ConnectionTrait,
    history: &[Arc<HistoryMessage>],
    lines: &mut [HistoryLine],
) -> Result<(), DbErr> {
    let with_pictures = history.iter().filter(|it| it.has_attachments);
    let mut found = attachment::load(db, with_pictures.map(|it| it.id)).await?;
    for line in lines {
        let pictures = found.remove(&line.message_id).unwrap_or_default();
        line.pictures = pictures.iter().map(to_history_picture).collect();
    }
    Ok(())
}

fn to_history_picture(row: &attachment::Model) -> HistoryPicture {
    HistoryPicture {
        id: row.id,
        asset: row.asset_id,
        media_type: row.media_type.clone(),
        size: (row.width, row.height),
        text: picture_text::of(row),
    }
}

/// Loads the bytes of the pictures that a prompt sends, and adds them to its messages. A picture that was
/// deleted meanwhile is left out.
///
/// # Errors
/// Returns the database error if a query fails.
pub async fn attach(db: &impl ConnectionTrait, built: &mut BuiltPrompt) -> Result<(), DbErr> {
    let mut loaded: HashMap<AttachmentId, Attachment> = HashMap::new();
    for picture in built.sent_pictures() {
        let Some(bytes) = asset::load_bytes(db, picture.asset).await? else {
            continue;
        };
        let attachment = Attachment {
            media_type: picture.media_type.clone(),
            data: STANDARD.encode(bytes),
            name: None,
            instead: Some(picture.text.clone()),
        };
        loaded.insert(picture.id, attachment);
    }
    if !loaded.is_empty() {
        built.attach_pictures(&loaded);
    }
    Ok(())
}
