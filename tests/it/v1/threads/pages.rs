//! Tests of the pages of lists under `/v1/assistants` and `/v1/threads`.

use serde_json::{Value, json};

use super::support::{create_assistant, create_thread, objects};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::http_client::expect;
use crate::support::v1_client::{V1Client, error_of};
use crate::v1::fixture::{V1Fixture, id};

/// The ids of a page, and whether more objects follow.
async fn page(fixture: &V1Fixture, path: &str) -> (Vec<String>, bool) {
    let list = expect(200, fixture.program.get(path).await);
    let data = list["data"].as_array().expect("a list");
    let ids: Vec<String> = data.iter().map(|it| id(it).to_owned()).collect();
    let ends = |it: Option<&String>| it.map_or(Value::Null, |it| json!(it));
    assert_eq!(list["object"], "list");
    assert_eq!(list["first_id"], ends(ids.first()));
    assert_eq!(list["last_id"], ends(ids.last()));
    (ids, list["has_more"] == true)
}

/// Asserts what each combination of the page parameters returns. `newest` are all ids of the list,
/// newest first.
async fn assert_pages(fixture: &V1Fixture, path: &str, newest: &[String]) {
    let [e, d, c, b, a] = newest else {
        panic!("the list has five objects");
    };
    for (query, expected, has_more) in [
        (String::new(), vec![e, d, c, b, a], false),
        ("order=asc".to_owned(), vec![a, b, c, d, e], false),
        ("limit=2".to_owned(), vec![e, d], true),
        (format!("limit=2&after={d}"), vec![c, b], true),
        (format!("limit=2&after={b}"), vec![a], false),
        (format!("after={a}"), vec![], false),
        (format!("limit=2&before={b}"), vec![d, c], true),
        (format!("limit=2&before={c}"), vec![e, d], false),
        (format!("before={e}"), vec![], false),
        (format!("order=asc&limit=2&after={b}"), vec![c, d], true),
        (format!("order=asc&limit=2&before={d}"), vec![b, c], true),
        (format!("after={e}&before={b}"), vec![d, c], false),
        (format!("limit=1&after={e}&before={b}"), vec![d], true),
    ] {
        let (ids, more) = page(fixture, &format!("{path}?{query}")).await;

        assert_eq!(ids.iter().collect::<Vec<_>>(), expected, "{query}");
        assert_eq!(more, has_more, "{query}");
    }
}

on_both! {
    async fn assistants_are_listed_in_pages(backend) {
        let fixture = V1Fixture::open(backend).await;
        let mut newest = Vec::new();
        for _ in 0..5 {
            newest.insert(0, id(&create_assistant(&fixture, json!({})).await).to_owned());
        }

        assert_pages(&fixture, "/assistants", &newest).await;

        fixture.close().await;
    }

    async fn messages_are_listed_in_pages(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &["a", "b", "c", "d", "e"]).await;
        create_thread(&fixture, &["other"]).await;
        let path = format!("/threads/{thread}/messages");
        let messages = objects(&fixture, &path).await;
        let newest: Vec<String> = messages.iter().map(|it| id(it).to_owned()).collect();

        assert_pages(&fixture, &path, &newest).await;

        fixture.close().await;
    }

    async fn a_page_continues_after_an_object_that_was_deleted(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &["a", "b", "c"]).await;
        for _ in 0..3 {
            create_assistant(&fixture, json!({})).await;
        }

        for path in ["/assistants".to_owned(), format!("/threads/{thread}/messages")] {
            let (all, _) = page(&fixture, &path).await;
            let (first, _) = page(&fixture, &format!("{path}?limit=2")).await;
            for id in &first {
                expect(200, fixture.program.delete(&format!("{path}/{id}")).await);
            }
            let (rest, has_more) = page(&fixture, &format!("{path}?limit=2&after={}", first[1])).await;

            assert_eq!((rest, has_more), (vec![all[2].clone()], false), "{path}");
        }
        fixture.close().await;
    }
}

on_sqlite! {
    async fn an_invalid_query_of_a_list_is_rejected(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &["a"]).await;
        let other = create_thread(&fixture, &["b"]).await;
        let of_other = objects(&fixture, &format!("/threads/{other}/messages")).await.remove(0);
        let ben = V1Client::new(&fixture.app.register("ben").await).await;
        let body = json!({ "model": "scripted" });
        let of_ben = expect(200, ben.post("/assistants", body).await);
        let lists = [
            ("/assistants".to_owned(), id(&of_ben)),
            (format!("/threads/{thread}/messages"), id(&of_other)),
        ];

        for (path, foreign) in lists {
            for (query, param) in [
                ("limit=0".to_owned(), "limit"),
                ("limit=101".to_owned(), "limit"),
                ("limit=x".to_owned(), "limit"),
                ("order=up".to_owned(), "order"),
                ("after=none".to_owned(), "after"),
                ("before=none".to_owned(), "before"),
                ("after=%00".to_owned(), "after"),
                (format!("after={foreign}"), "after"),
            ] {
                let refused = fixture.program.get(&format!("{path}?{query}")).await;
                assert_eq!(error_of(&refused), (400, "invalid_value".into(), json!(param)), "{path} {query}");
            }
        }
        let run = fixture.program.get(&format!("/threads/{thread}/messages?run_id=%00")).await;
        assert_eq!(error_of(&run).2, "run_id");
        fixture.close().await;
    }
}
