//! Tests that the messages before the history of a prompt are summarized in the background.

use sea_orm::EntityTrait;
use serde_json::json;
use troupe::conversations::message::Visibility;
use troupe::memories::summaries::summary;
use troupe::memories::summaries::summary::SummaryStatus;
use troupe::prompt::record::run_prompt;

use crate::support::backends::{on_both, on_sqlite};
use crate::support::fake_provider::script::HoldPoint;
use crate::support::fixtures;
use crate::support::summary_fixture::{LONG, answer, has_word, open_summaries, with_content};

on_both! {
    async fn what_left_the_history_stands_in_the_summary(backend) {
        let app = open_summaries(backend).await;

        app.talk(LONG).await;

        let prompt = app.prompt().await;
        for n in 0..LONG {
            assert!(has_word(&prompt, &format!("W{n}")), "W{n} is missing in {prompt}");
        }
        assert!(prompt.contains("[Summary of earlier events."), "{prompt}");
        let running = app.in_use().await;
        assert_eq!((running.from_seq, running.status), (1, SummaryStatus::Current));
        let parts = app.parts().await;
        assert_eq!((parts[0].0, parts.last().unwrap().1), (1, running.to_seq));
        assert!(parts.iter().all(|(from, to)| to - from < 10), "{parts:?}");
        assert!(parts.windows(2).all(|it| it[0].1 + 1 == it[1].0), "{parts:?}");
        assert!(app.tokens_used().await > 0);
        app.close_without_events().await;
    }

    async fn a_summary_is_corrected_after_an_edit(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;
        let before = app.in_use().await;

        app.edit_covered("W1 ", "Wreck they sailed on past the harbor wall.").await;

        assert_eq!(app.in_use().await.status, SummaryStatus::Stale);
        assert!(app.prompt().await.contains("[Summary of earlier events."), "the old text is used until then");
        app.summarize().await;
        let after = app.in_use().await;
        assert!(has_word(&after.content, "Wreck"), "{}", after.content);
        assert_eq!((after.status, after.to_seq >= before.to_seq), (SummaryStatus::Current, true));
        assert!(after.version > before.version);
        app.close_without_events().await;
    }

    async fn a_deleted_message_is_in_no_summary_of_a_prompt(backend) {
        let app = open_summaries(backend).await;
        app.talk(2 * LONG).await;
        let versions = summary::list_running(app.db.reader(), app.conversation).await.unwrap();
        assert!(versions.len() > 1, "{versions:?}");
        let deleted = app.message_of("W1 ").await;

        app.engine.set_visibility(app.scope(), deleted.id, Visibility::Hidden).await.unwrap();

        assert!(!app.in_use().await.is_usable);
        assert!(!has_word(&app.prompt().await, "W1"), "a deleted message was sent");
        app.summarize().await;
        let after = app.in_use().await;
        assert!(after.is_usable && !has_word(&after.content, "W1") && has_word(&after.content, "W2"));
        let kept = summary::list_running(app.db.reader(), app.conversation).await.unwrap();
        assert!(kept.iter().all(|it| !has_word(&it.content, "W1")), "an older version contains it");
        assert!(has_word(&app.prompt().await, "W2"));
        app.close_without_events().await;
    }

    async fn the_macro_inserts_the_current_summary_and_nothing_after_a_deletion(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;
        app.edit_summary(with_content("They met {{user}}.")).await;
        let settings = r#"{"scenario_override": "So far: {{summary}}|"}"#;
        let sql = format!("UPDATE conversations SET settings = '{settings}' WHERE id = {}", app.conversation);
        app.facts().await.execute(&sql).await;

        let prompt = app.prompt().await;
        assert!(prompt.contains("So far: They met {{user}}.|"), "{prompt}");
        let deleted = app.message_of("W1 ").await;
        app.engine.set_visibility(app.scope(), deleted.id, Visibility::Hidden).await.unwrap();

        let prompt = app.prompt().await;
        assert!(prompt.contains("So far: |"), "{prompt}");
        app.close_without_events().await;
    }

    async fn a_text_whose_messages_changed_during_the_call_is_dropped(backend) {
        let app = open_summaries(backend).await;
        let gate = HoldPoint::closed();
        let held = gate.clone();
        let mut is_first = true;
        app.upstream.answer_with(move |body| {
            let is_part = body["messages"][0]["content"].as_str().is_some_and(|it| it.starts_with("You summarize"));
            let holds = is_part && std::mem::take(&mut is_first);
            answer(body, holds.then_some(&held))
        });
        for n in 0..LONG {
            app.say(n).await;
        }
        let n_before = app.upstream.n_requests();
        let job = app.learning();
        let working = tokio::spawn(async move { job.run_due().await });
        app.upstream.wait_for_requests(n_before + 1).await;

        app.edit_covered("W1 ", "Wreck and storm.").await;
        gate.open();

        working.await.unwrap().unwrap();
        let content = app.in_use().await.content;
        assert!(has_word(&content, "Wreck") && !has_word(&content, "W1"), "{content}");
        app.close_without_events().await;
    }

    async fn a_long_backlog_lets_other_tasks_come_first(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;
        let n_before = app.upstream.n_requests();

        let n = app.talk_without_summaries(6 * LONG).await;

        assert!(app.summarize().await > 1, "one turn wrote everything");
        let n_calls = app.upstream.n_requests() - n_before - n;
        assert!(n_calls > 16, "{n_calls}");
        assert_eq!(app.parts().await.last().map(|it| it.1), Some(app.in_use().await.to_seq));
        app.close_without_events().await;
    }

    async fn two_nodes_write_each_part_once(backend) {
        let app = open_summaries(backend).await;
        for n in 0..LONG {
            app.say(n).await;
        }

        let (one, other) = tokio::join!(app.summarize(), app.summarize());

        assert_eq!(one + other, 1, "both nodes had the task");
        let parts = app.parts().await;
        assert!(parts.windows(2).all(|it| it[0].1 + 1 == it[1].0), "{parts:?}");
        app.close_without_events().await;
    }

    async fn a_deleted_conversation_has_no_summaries(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;
        assert!(app.running().await.is_some());

        app.delete_conversation().await;

        assert_eq!((app.running().await, app.parts().await), (None, Vec::new()));
        app.close_broken().await;
    }
}

on_sqlite! {
    async fn the_beginning_of_a_prompt_stays_equal_for_ten_turns(backend) {
        let app = open_summaries(backend).await;
        app.change_rules(|it| it.settings["preset"]["context_tokens"] = json!(2_000)).await;
        app.talk(2 * LONG).await;

        let mut longest = 0;
        let mut n_equal = 0;
        let mut before: Option<Vec<String>> = None;
        for _ in 0..LONG {
            let prompt = app.prompt_texts().await;
            app.summarize().await;
            let is_continued = before.is_some_and(|it| prompt.starts_with(&it));
            n_equal = if is_continued { n_equal + 1 } else { 0 };
            longest = longest.max(n_equal);
            before = Some(prompt);
        }

        assert!(longest >= 10, "{longest}");
        app.close_without_events().await;
    }

    async fn without_a_model_nothing_is_summarized_and_nothing_waits(backend) {
        let app = open_summaries(backend).await;
        for n in 0..LONG {
            app.say(n).await;
        }
        fixtures::disable_provider(&app.db, true).await;

        assert_eq!(app.summarize().await, 1);
        assert_eq!((app.running().await, app.summarize().await), (None, 0));
        app.close_broken().await;
    }

    async fn nothing_is_summarized_while_summaries_are_turned_off(backend) {
        let app = open_summaries(backend).await;
        app.change_rules(|it| it.settings["memory"]["summaries"]["enabled"] = json!(false)).await;

        app.talk(LONG).await;

        assert_eq!((app.running().await, app.row().await.summary_goal_seq), (None, 0));
        app.close_without_events().await;
    }

    async fn a_stored_prompt_refers_to_the_summary_and_does_not_contain_it(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;
        app.edit_summary(with_content("Ann owns the ship.")).await;
        app.prompt().await;
        let last = app.runs().await.into_iter().next_back().expect("a run");

        let stored = run_prompt::Entity::find_by_id(last.id).one(app.db.reader()).await.unwrap();
        let record = serde_json::to_string(&stored.expect("a prompt").record).unwrap();

        assert!(!record.contains("Ann owns the ship."), "{record}");
        assert!(record.contains("\"summary\""), "{record}");
        app.close_without_events().await;
    }
}
