//! Plans the greetings of characters that joined a space.

use std::sync::Arc;

use crate::conversations::{message, swipe};
use crate::prompt::record::prompt_effects::PromptEffects;
use crate::runs::scheduling::command::Greeting;
use crate::runs::scheduling::plan::{NewMessage, PlanChange};
use crate::runs::scheduling::plan_builder::PlanBuilder;
use crate::runs::scheduling::state::command_facts::CommandFacts;

/// Characters greet, each once, until the conversation contains other messages than greetings.
pub fn insert(builder: &mut PlanBuilder, greetings: &[Greeting]) {
    let CommandFacts::Greetings {
        greeted: Some(greeted),
    } = &builder.state.facts
    else {
        return;
    };
    for it in greetings
        .iter()
        .filter(|it| !greeted.contains(&it.membership))
    {
        let Some((first, _)) = it.texts.split_first() else {
            continue;
        };
        builder.push(PlanChange::Append(NewMessage {
            author: it.membership,
            role: message::MessageRole::Assistant,
            content: first.content.clone(),
            token_count: first.token_count,
            client_id: None,
            is_ooc: false,
            audience: None,
            is_for_people: false,
            persona: None,
            reply_to: None,
            attachments: Vec::new(),
            run: None,
            alternates: if it.texts.len() > 1 {
                it.texts.clone()
            } else {
                Vec::new()
            },
            metadata: serde_json::json!({ swipe::GREETING_KEY: true }),
        }));
        if !it.macros.is_empty() {
            builder.push(PlanChange::StoreEffects(Arc::new(PromptEffects {
                variables: it.macros.clone(),
                ..PromptEffects::default()
            })));
        }
    }
}
