//! Chats as lines of JSON: what is read is whole and within its limits, and a message that goes out
//! comes in again as it was.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId, SwipeId};
use troupe::conversations::chats::chat_batches::{BatchEvent, MAX_MESSAGES};
use troupe::conversations::chats::chat_line::{ChatLine, ChatMessage};
use troupe::conversations::chats::{chat_batches, chat_export, chat_line};
use base::message_text::MAX_BYTES;
use troupe::conversations::swipe::SwipeText;
use troupe::conversations::{message, swipe, timeline};

/// Reads the bytes as a file.
pub fn is_held(data: &[u8]) {
    let mut n_messages = 0;
    let count = |text: &str| text.len() as i64;
    let report = chat_batches::read(data, &count, &mut |event| {
        if let BatchEvent::Batch(batch) = event {
            assert!(batch.messages.len() <= MAX_MESSAGES);
            assert!(batch.bytes_read <= data.len() as u64);
            n_messages += batch.messages.len();
            batch.messages.iter().for_each(is_whole);
        }
        true
    });
    let report = report.expect("bytes can be read");
    let n_lines = data.split(|it| *it == b'\n').count();
    assert!(report.n_skipped as usize + n_messages <= n_lines);
}

fn is_whole(read: &ChatMessage) {
    for text in &read.texts {
        let said = &text.content;
        assert!(!said.trim().is_empty() && said.len() <= MAX_BYTES && !said.contains('\0'));
    }
    let (model, swipes) = stored(read);
    let line = chat_export::message_line(read.name.as_deref().unwrap_or("Ada"), &model, &swipes);
    let line = serde_json::to_vec(&line).expect("a line is JSON");
    let Ok(ChatLine::Message(back)) = chat_line::read(&line, false) else {
        panic!("what goes out comes in: {}", String::from_utf8_lossy(&line));
    };
    let of = |it: &ChatMessage| (it.role, it.visibility, it.active, texts(&it.texts));
    assert_eq!(of(&back), of(read), "{}", String::from_utf8_lossy(&line));
    assert_eq!(back.repairs, [], "nothing of ours needs repair");
}

fn texts(all: &[SwipeText]) -> Vec<(String, String)> {
    let text = |it: &SwipeText| (it.content.clone(), it.metadata.to_string());
    all.iter().map(text).collect()
}

/// As the database has it.
fn stored(read: &ChatMessage) -> (message::Model, Vec<swipe::Model>) {
    let shown = &read.texts[read.active];
    let mut model = timeline::new_model(
        ConversationId(1),
        MembershipId(1),
        read.role,
        shown.content.clone(),
        read.sent_at.unwrap_or(Timestamp(0)),
    );
    model.visibility = read.visibility;
    model.active_swipe = read.active as i64;
    model.metadata = shown.metadata.clone();
    let swipe = |(position, text): (i64, &SwipeText)| swipe::Model {
        id: SwipeId(position),
        message_id: MessageId(1),
        position,
        content: text.content.clone(),
        conversation_run_id: None,
        metadata: text.metadata.clone(),
        token_count: 0,
        edited_at: None,
        edited_by: None,
    };
    (model, (0..).zip(&read.texts).map(swipe).collect())
}
