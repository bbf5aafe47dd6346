//! Tests of the kept clients: which settings share one, and how many are kept.

use std::sync::Arc;

use super::{EmbeddingClients, MAX_CLIENTS};
use crate::embeddings::options::{CallKind, EmbeddingOptions};
use crate::error::LlmError;
use crate::registry::{ProviderKind, ProviderSpec, RegistryError};
use crate::secret::Secret;
use crate::test_server::{Answer, ScriptedServer, registry};

fn spec() -> ProviderSpec {
    ProviderSpec {
        kind: ProviderKind::OpenaiCompatible,
        base_url: Some("http://127.0.0.1:1/v1".to_owned()),
        api_key: Some(Secret::new("a")),
        model: "m".to_owned(),
        options: Default::default(),
        extra_headers: Vec::new(),
    }
}

#[test]
fn a_change_of_model_address_key_or_cache_flag_gives_another_client() {
    let clients = EmbeddingClients::new(registry());
    let client = clients.client(&spec(), true).unwrap();
    let change = |change: fn(&mut ProviderSpec)| {
        let mut spec = spec();
        change(&mut spec);
        clients.client(&spec, true).unwrap()
    };

    assert!(Arc::ptr_eq(&client, &change(|_| {})));
    for other in [
        change(|it| it.model = "n".to_owned()),
        change(|it| it.base_url = Some("http://127.0.0.1:2/v1".to_owned())),
        change(|it| it.api_key = Some(Secret::new("b"))),
        change(|it| it.api_key = None),
        change(|it| it.kind = ProviderKind::Ollama),
        clients.client(&spec(), false).unwrap(),
    ] {
        assert!(!Arc::ptr_eq(&client, &other));
    }
    assert!(Arc::ptr_eq(&client, &change(|_| {})));
}

#[test]
fn the_client_that_was_not_requested_for_the_longest_time_is_replaced() {
    let clients = EmbeddingClients::new(registry());
    let client = |model: usize| {
        let spec = ProviderSpec {
            model: model.to_string(),
            ..spec()
        };
        clients.client(&spec, true).unwrap()
    };
    let first: Vec<_> = (0..MAX_CLIENTS).map(client).collect();

    client(0);
    client(MAX_CLIENTS);

    assert_eq!(clients.list_breakers().len(), MAX_CLIENTS);
    assert!(Arc::ptr_eq(&first[0], &client(0)));
    assert!(!Arc::ptr_eq(&first[1], &client(1)));
}

#[test]
fn an_api_without_embeddings_has_no_client() {
    let clients = EmbeddingClients::new(registry());
    let client = |kind| {
        let spec = ProviderSpec { kind, ..spec() };
        clients.client(&spec, true).unwrap_err()
    };

    assert_eq!(client(ProviderKind::Demo), RegistryError::NoEndpoint);
    assert!(matches!(
        client(ProviderKind::Anthropic),
        RegistryError::Unusable(LlmError::Unusable { .. })
    ));
    assert!(clients.list_breakers().is_empty());
}

#[tokio::test]
async fn each_api_is_called_at_its_path() {
    for (kind, path) in [
        (ProviderKind::OpenaiCompatible, "/v1/embeddings"),
        (ProviderKind::Openai, "/v1/embeddings"),
        (ProviderKind::Ollama, "/v1/embeddings"),
        (ProviderKind::Gemini, "/v1/openai/embeddings"),
    ] {
        let mut server = ScriptedServer::start(|_| Answer::Vectors).await;
        let spec = ProviderSpec {
            kind,
            ..server.spec("m")
        };
        let client = EmbeddingClients::new(registry()).client(&spec, true);

        let result = client
            .unwrap()
            .embed(&["a"], CallKind::Read, &EmbeddingOptions::default())
            .await;

        assert!(result.is_ok(), "{kind}");
        let request = server.next_request().await;
        assert!(
            request.head.starts_with(&format!("post {path} ")),
            "{}",
            request.head
        );
    }
}

#[tokio::test]
async fn a_new_client_has_its_own_cache_and_breaker() {
    let mut server = ScriptedServer::start(|nth| match nth {
        0 => Answer::Vectors,
        1..4 => Answer::Status(500),
        _ => Answer::Vectors,
    })
    .await;
    let clients = EmbeddingClients::new(registry());
    let embed = async |model: &str, text: &str| {
        let client = clients.client(&server.spec(model), true).unwrap();
        let options = EmbeddingOptions::default();
        client
            .embed(&[text], CallKind::Read, &options)
            .await
            .is_ok()
    };

    assert!(embed("m", "a").await);
    for _ in 0..4 {
        assert!(!embed("m", "b").await);
    }
    assert!(embed("n", "a").await);

    assert_eq!(server.n_requests(), 5);
}
