//! Tests of pictures in prompts: which are sent, what a model without vision gets instead, and their tokens.

use std::collections::HashMap;

use base::ids::{AssetId, AttachmentId};
use llm::tool::Attachment;
use tavern::presets::complete_preset::NamesBehavior;

use crate::conversations::message::MessageRole;
use crate::prompt::blocks::HistoryPicture;
use crate::prompt::builder::tests::{count, line, solo};
use crate::prompt::builder::{BuiltPrompt, build};
use crate::prompt::context::PromptContext;
use crate::providers::vision::PictureCost;

fn picture(id: i64) -> HistoryPicture {
    HistoryPicture {
        id: AttachmentId(id),
        asset: AssetId(id),
        media_type: "image/png".to_owned(),
        size: (750, 100),
        text: format!("[Picture: number {id}]"),
    }
}

/// A message of Bob with a text and these pictures at the end of the history.
fn with_message(mut context: PromptContext, text: &str, pictures: &[i64]) -> PromptContext {
    let seq = context.history.last().map_or(1, |it| it.seq + 1);
    let mut message = line(seq, "Bob", MessageRole::User, text);
    message.pictures = pictures.iter().map(|it| picture(*it)).collect();
    context.history.push(message);
    context
}

fn built(context: &PromptContext) -> BuiltPrompt {
    build(context, &count).expect("the prompt fits")
}

fn sent(built: &BuiltPrompt) -> Vec<i64> {
    built.sent_pictures().map(|it| it.id.0).collect()
}

#[test]
fn a_model_without_vision_gets_the_descriptions() {
    let context = with_message(with_message(solo(), "Look.", &[1, 2]), " ", &[3]);

    let built = built(&context);

    let texts: Vec<&str> = built
        .messages
        .iter()
        .map(|it| it.content.as_str())
        .collect();
    let texts = &texts[texts.len() - 2..];
    assert_eq!(
        texts,
        [
            "Look.\n[Picture: number 1]\n[Picture: number 2]",
            " [Picture: number 3]"
        ]
    );
    assert_eq!(built.messages.last().unwrap().name.as_deref(), Some("Bob"));
    assert_eq!(sent(&built), [] as [i64; 0]);
    let block = built
        .blocks
        .iter()
        .rfind(|it| !it.pictures.is_empty())
        .unwrap();
    assert_eq!(
        (block.pictures[0].sent, block.pictures[0].tokens),
        (false, 3)
    );
    assert_eq!(block.tokens, 3 + 1, "the picture and the name");
}

#[test]
fn a_vision_model_gets_the_newest_eight_pictures_and_the_descriptions_of_the_others() {
    let context = PromptContext {
        picture_cost: Some(PictureCost::Anthropic),
        ..solo()
    };
    let context = with_message(context, "First.", &[1, 2, 3, 4]);
    let context = with_message(context, "", &[5, 6, 7, 8]);
    let context = with_message(context, "Last.", &[9]);

    let mut built = built(&context);

    assert_eq!(sent(&built), [2, 3, 4, 5, 6, 7, 8, 9]);
    let loaded: HashMap<AttachmentId, Attachment> = (1..=9)
        .map(|id| {
            let attachment = Attachment {
                media_type: "image/png".to_owned(),
                data: id.to_string(),
                name: None,
                instead: None,
            };
            (AttachmentId(id), attachment)
        })
        .collect();
    built.attach_pictures(&loaded);
    let messages = &built.messages[built.messages.len() - 3..];
    let data = |at: usize| -> Vec<&str> {
        let attached = messages[at].attachments.iter();
        attached.map(|it| it.data.as_str()).collect()
    };
    assert_eq!(messages[0].content, "First.\n[Picture: number 1]");
    assert_eq!(
        (messages[1].content.as_str(), messages[1].name.as_deref()),
        ("", Some("Bob"))
    );
    assert_eq!(
        (data(0), data(1), data(2)),
        (vec!["2", "3", "4"], vec!["5", "6", "7", "8"], vec!["9"])
    );
}

#[test]
fn the_tokens_of_pictures_count_before_they_are_sent() {
    let plain = built(&with_message(solo(), "Look.", &[])).total_tokens;
    let mut context = PromptContext {
        picture_cost: Some(PictureCost::Anthropic),
        ..solo()
    };
    // 750 × 100 / 750.
    let with_picture = built(&with_message(context.clone(), "Look.", &[1])).total_tokens;
    assert_eq!(with_picture, plain + 100);

    context.picture_cost = Some(PictureCost::Other);
    context.preset.context_tokens = Some(1_700);
    let mut context = with_message(context, "Old.", &[1]);
    context = with_message(context, "New.", &[2]);
    let built = built(&context);

    assert_eq!(sent(&built), [2], "two pictures do not fit");
    assert!(built.dropped_messages >= 1);
}

#[test]
fn a_name_in_the_text_stands_before_the_description() {
    let mut context = with_message(solo(), "", &[1]);
    context.preset.names = NamesBehavior::InText;

    let built = built(&context);

    assert_eq!(
        built.messages.last().unwrap().content,
        "Bob: [Picture: number 1]"
    );
}
