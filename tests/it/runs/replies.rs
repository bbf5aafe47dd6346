//! Tests of the line that quotes a message in a prompt, and of its stored form.

use sea_orm::EntityTrait;
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message::Visibility;
use troupe::prompt::record::{run_prompt, sent_prompt_loader};

use crate::support::backends::on_both;
use crate::support::engine_test::EngineTest;

impl EngineTest {
    /// Returns the texts of the prompt of the newest run as they are shown now.
    async fn shown_prompt(&self) -> Vec<String> {
        let run = self.runs().await.pop().expect("there is a run");
        let loaded = sent_prompt_loader::load_for_run(
            self.db.reader(),
            self.row().await.space_id,
            run.id,
            Viewer::Server,
        );
        let (prompt, texts) = loaded.await.unwrap().expect("the prompt is stored");
        let blocks = prompt.into_blocks(&texts).into_iter();
        blocks.map(|it| it.text).collect()
    }

    /// Returns what is stored of all prompts.
    async fn stored_prompts(&self) -> String {
        let rows = run_prompt::Entity::find().all(self.db.reader()).await;
        let records: Vec<_> = rows.unwrap().into_iter().map(|it| it.record).collect();
        serde_json::to_string(&records).unwrap()
    }
}

on_both! {
    async fn a_prompt_quotes_the_answered_message_and_stores_only_a_reference(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post("The secret\nis out.").await;
        app.settle().await;
        let target = app.messages().await[0].id;
        app.user.reply("Really?", target).await;
        app.settle().await;

        let quoted = "> Eve: The secret is out.\nReally?".to_owned();
        let sent = app.upstream.body(app.upstream.n_requests() - 1).to_string();
        assert!(sent.contains("> Eve: The secret is out.\\nReally?"), "{sent}");
        assert!(app.shown_prompt().await.contains(&quoted));
        assert!(!app.stored_prompts().await.contains("secret"), "the record contains the text of a message");

        app.engine.set_visibility(app.scope(), target, Visibility::Hidden).await.unwrap();
        let shown = app.shown_prompt().await;
        assert!(shown.contains(&"Really?".to_owned()), "{shown:?}");
        assert!(!shown.join("\n").contains("secret"), "{shown:?}");
        app.user.post("And now?").await;
        app.settle().await;
        let sent = app.upstream.body(app.upstream.n_requests() - 1).to_string();
        assert!(sent.contains("Really?") && !sent.contains("secret"), "{sent}");
        app.close().await;
    }

    async fn a_reply_mentions_nobody_and_an_excluded_message_is_not_quoted(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post("Never sent.").await;
        app.settle().await;
        let target = app.messages().await[0].id;
        app.engine.set_visibility(app.scope(), target, Visibility::Excluded).await.unwrap();

        app.user.reply("Really?", target).await;
        app.settle().await;

        let sent = app.upstream.body(app.upstream.n_requests() - 1).to_string();
        assert!(sent.contains("Really?") && !sent.contains("Never sent."), "{sent}");
        app.close().await;
    }
}
