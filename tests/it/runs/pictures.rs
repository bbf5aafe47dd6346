//! Tests of the pictures in the prompts of runs, on a model that accepts them, one that does not, and one that
//! rejects pictures.

use std::io::Cursor;

use base::ids::AttachmentId;
use llm::registry::ProviderKind;
use sea_orm::EntityTrait;
use serde_json::{Value, json};
use tavern::pictures::message_picture;
use troupe::attachments::attachment_store;
use troupe::attachments::attachment_store::NewAttachment;
use troupe::characters::quota::StorageQuota;
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message;
use troupe::conversations::message::Visibility;
use troupe::prompt::record::{run_prompt, sent_prompt_loader};
use troupe::providers::provider;
use troupe::runs::scheduling::messages::new_post::NewPost;
use troupe::spaces::membership;

use crate::support::backends::{on_both, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::pictures;

impl EngineTest {
    /// Stores a picture of Eve that was not posted.
    async fn picture(&self, seed: u8, alt: &str) -> AttachmentId {
        let author = membership::find(self.db.reader(), self.user.membership).await;
        let owner = author
            .unwrap()
            .unwrap()
            .user_id
            .expect("Eve has an account");
        let file = pictures::png(640, 480, seed);
        let new = NewAttachment {
            picture: message_picture::redraw(Cursor::new(file)).unwrap(),
            file_name: Some("cat.png".to_owned()),
            alt: alt.to_owned(),
        };
        let quota = StorageQuota { owner, limit: 0 };
        let stored = attachment_store::create(&self.db, quota, new, self.clock.now()).await;
        stored.unwrap().id
    }

    /// Posts a message with pictures, waits for the reply and returns the message.
    async fn show(&self, text: &str, attachments: &[AttachmentId]) -> message::MessageView {
        let post = NewPost {
            attachments: attachments.to_vec(),
            ..NewPost::new(self.user.membership, text.to_owned())
        };
        let posted = self.user.send(post).await.expect("the post is accepted");
        self.settle().await;
        posted.message
    }

    async fn provider(&self) -> provider::Model {
        let found = provider::find_default(self.db.reader()).await;
        found.unwrap().expect("there is a provider")
    }

    async fn set_vision(&self, setting: &str) {
        let mut facts = self.facts().await;
        let settings = json!({ "vision": setting });
        facts
            .execute(&format!("UPDATE llm_providers SET settings = '{settings}'"))
            .await;
    }

    /// Returns the user's messages of the newest request.
    fn sent_messages(&self) -> Vec<Value> {
        let body = self.upstream.body(self.upstream.n_requests() - 1);
        let messages = body["messages"].as_array().unwrap().iter();
        messages
            .filter(|it| it["role"] == "user")
            .cloned()
            .collect()
    }

    /// Returns the stored prompt of the newest run as it is shown now: text and pictures of its last block
    /// of a message.
    async fn shown_picture_block(&self) -> (String, Vec<(bool, i64)>) {
        let run = self.runs().await.pop().expect("there is a run");
        let loaded = sent_prompt_loader::load_for_run(
            self.db.reader(),
            self.row().await.space_id,
            run.id,
            Viewer::Server,
        );
        let (prompt, texts) = loaded.await.unwrap().expect("the prompt is stored");
        let mut blocks = prompt.into_blocks(&texts).into_iter();
        let block = blocks
            .find(|it| !it.pictures.is_empty())
            .expect("a block with a picture");
        let pictures = block.pictures.iter().map(|it| (it.sent, it.tokens));
        (block.text, pictures.collect())
    }
}

fn image_parts(message: &Value) -> usize {
    let parts = message["content"].as_array();
    parts.map_or(0, |it| {
        it.iter().filter(|it| it["type"] == "image_url").count()
    })
}

on_both! {
    async fn a_vision_model_gets_the_picture_and_the_prompt_stores_only_a_reference(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.set_vision("on").await;
        let picture = app.picture(1, "The secret").await;
        let message = app.show("What is this?", &[picture]).await;

        let sent = app.sent_messages();
        assert_eq!(image_parts(&sent[0]), 1, "{sent:?}");
        let url = sent[0].to_string();
        assert!(url.contains("data:image/jpeg;base64,") && !url.contains("[Picture"), "{url}");
        let rows = run_prompt::Entity::find().all(app.db.reader()).await.unwrap();
        let stored = serde_json::to_string(&rows[0].record).unwrap();
        assert!(!stored.contains("secret") && !stored.contains("base64"), "{stored}");
        assert_eq!(app.shown_picture_block().await.1, [(true, 1_000)]);
        let stats = app.runs().await[0].debug.prompt.clone().unwrap();
        assert!(stats.total_tokens > 1_000 && !stats.pictures_refused);

        app.engine.set_visibility(app.scope(), message.id, Visibility::Hidden).await.unwrap();
        app.user.post("And now?").await;
        app.settle().await;
        assert_eq!(image_parts(&app.sent_messages()[0]), 0);
        app.close().await;
    }

    async fn a_model_without_vision_gets_the_description(backend) {
        let app = EngineTest::builder(backend).open().await;
        let (cat, plain) = (app.picture(1, "A grey cat").await, app.picture(2, "").await);

        app.show("Look.", &[cat]).await;
        app.show("", &[plain]).await;

        let sent = json!(app.sent_messages()).to_string();
        assert!(sent.contains("Look.\\n[Picture: A grey cat]"), "{sent}");
        assert!(sent.contains("[Picture: cat.png, 640×480]"), "{sent}");
        assert!(!sent.contains("base64"), "{sent}");
        let (text, pictures) = app.shown_picture_block().await;
        assert_eq!(text, "Look.\n[Picture: A grey cat]");
        assert!(!pictures[0].0 && pictures[0].1 > 0);
        app.close().await;
    }

    async fn a_model_that_rejects_pictures_is_asked_again_without_them_and_remembered(backend) {
        let app = EngineTest::builder(backend).open().await;
        let model = app.provider().await.model;
        let mut facts = app.facts().await;
        let settings = json!({"temperature": 0.5, "detected": {"vision": {model.as_str(): true}}});
        facts.execute(&format!("UPDATE llm_providers SET settings = '{settings}'")).await;
        let refusal = json!({"error": {"message": "This model cannot process that content."}});
        app.upstream.next(ResponseScript::json(400, &refusal));
        app.upstream.next(ResponseScript::say("A cat, you say."));
        let picture = app.picture(1, "A grey cat").await;

        app.show("Look.", &[picture]).await;

        assert_eq!(app.answers().await, ["A cat, you say."]);
        assert_eq!(app.upstream.n_requests(), 2);
        let sent = app.sent_messages();
        assert_eq!(image_parts(&sent[0]), 0);
        assert!(sent[0].to_string().contains("Look.\\n[Picture: A grey cat]"), "{sent:?}");
        assert!(app.runs().await[0].debug.prompt.as_ref().unwrap().pictures_refused);
        let settings = app.provider().await.settings;
        assert_eq!(settings, json!({"temperature": 0.5, "detected": {"vision": {model.as_str(): false}}}));

        app.user.post("Are you sure?").await;
        app.settle().await;
        assert_eq!(app.upstream.n_requests(), 3, "the picture was sent again");
        app.close().await;
    }

    async fn an_error_that_remains_without_pictures_says_nothing_about_them(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.set_vision("on").await;
        for _ in 0..2 {
            app.upstream.next(ResponseScript::json(400, &json!({"error": {"message": "No such parameter."}})));
        }
        let picture = app.picture(1, "").await;

        app.show("Look.", &[picture]).await;

        let run = app.runs().await.pop().unwrap();
        assert_eq!(run.error.as_ref().map(|it| it.code.as_str()), Some("upstream_error"));
        assert!(!run.debug.prompt.as_ref().unwrap().pictures_refused);
        assert_eq!(app.provider().await.settings, json!({"vision": "on"}));
        app.close().await;
    }
}

on_sqlite! {
    async fn a_quotation_of_a_picture_describes_it_and_a_deleted_one_leaves_the_prompt(backend) {
        let app = EngineTest::builder(backend).open().await;
        let picture = app.picture(1, "A grey cat").await;
        let target = app.show("", &[picture]).await.id;
        app.user.reply("Really?", target).await;
        app.settle().await;

        let sent = json!(app.sent_messages()).to_string();
        assert!(sent.contains("> Eve: [Picture: A grey cat]\\nReally?"), "{sent}");
        app.engine.set_visibility(app.scope(), target, Visibility::Hidden).await.unwrap();
        app.user.post("And now?").await;
        app.settle().await;
        let sent = json!(app.sent_messages()).to_string();
        assert!(!sent.contains("grey cat"), "{sent}");
        app.close().await;
    }

    async fn a_name_decides_whether_an_unset_model_sees(backend) {
        let app = EngineTest::builder(backend).open().await;
        let row = app.provider().await;
        for (kind, model, sees) in [
            (ProviderKind::OpenaiCompatible, "gpt-4o", true),
            (ProviderKind::OpenaiCompatible, "mystery", false),
            (ProviderKind::Demo, "gpt-4o", false),
        ] {
            let named = provider::Model { kind, model: model.to_owned(), ..row.clone() };
            assert_eq!(named.accepts_pictures(), sees, "{kind:?} {model}");
        }
        app.close().await;
    }
}
