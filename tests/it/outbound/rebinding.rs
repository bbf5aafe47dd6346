//! DNS rebinding: a name that resolves to another address when it is called than when it was
//! checked.

use std::sync::Arc;
use std::time::Duration;

use llm::error::LlmError;
use llm::model_list;
use llm::registry::ProviderRegistry;
use outbound_http::client::OutboundClient;

use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call::spec;
use crate::support::test_resolver::TestResolver;
use crate::support::trap_server::TrapServer;

/// Lists the models behind a name over a new connection.
async fn list(
    names: &Arc<TestResolver>,
    port: u16,
    allow_private: bool,
) -> Result<usize, LlmError> {
    let egress = OutboundClient::new(names.clone(), allow_private)?;
    let endpoint = ProviderRegistry::new(egress, Duration::ZERO, None)
        .endpoint(&spec(&format!("http://turning.example:{port}/v1")))
        .expect("the check of the URL accepts names");
    Ok(model_list::list_models(&endpoint).await?.models.len())
}

fn port_of(upstream: &FakeProvider) -> u16 {
    let url = upstream.base_url();
    let port = url.rsplit(':').next().and_then(|it| it.split('/').next());
    port.and_then(|it| it.parse().ok())
        .expect("a URL with a port")
}

#[tokio::test]
async fn a_call_goes_to_the_address_that_was_checked() {
    let upstream = FakeProvider::start().await;
    // Resolves to an allowed address first, then to a forbidden one, and so on.
    let names = TestResolver::new(&[
        ("turning.example", &["127.0.0.1"]),
        ("turning.example", &["169.254.169.254"]),
    ]);

    for nth in 0..10 {
        let listed = list(&names, port_of(&upstream), true).await;

        // A second lookup between check and call would get the other address.
        assert_eq!(names.asked().len(), nth + 1, "one lookup for each call");
        match nth % 2 {
            0 => assert_eq!(listed, Ok(1), "{nth}"),
            _ => assert!(matches!(listed, Err(LlmError::Unusable { .. })), "{nth}"),
        }
    }
}

#[tokio::test]
async fn blocked_addresses_of_a_name_with_several_are_never_called() {
    let decoy = TrapServer::start();
    let upstream = FakeProvider::start().await;
    let names = TestResolver::new(&[(
        "turning.example",
        &["169.254.169.254", "0.0.0.0", "127.0.0.1"],
    )]);

    let listed = list(&names, port_of(&upstream), true).await;
    // 0.0.0.0 would reach the decoy, which listens on this machine.
    let only_bad = TestResolver::new(&[("turning.example", &["0.0.0.0", "::", "fe80::1"])]);
    let refused = list(&only_bad, decoy.port, true).await;

    assert_eq!(listed, Ok(1));
    assert!(matches!(refused, Err(LlmError::Unusable { .. })));
    assert_eq!(decoy.n_came(), 0);
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_not_called() {
    let decoy = TrapServer::start();
    let names = TestResolver::new(&[
        ("turning.example", &["127.0.0.1"]),
        ("turning.example", &["::1"]),
        ("turning.example", &["::ffff:127.0.0.1", "10.0.0.1"]),
    ]);

    for _ in 0..9 {
        let refused = list(&names, decoy.port, false).await;
        assert!(
            matches!(refused, Err(LlmError::Unusable { .. })),
            "{refused:?}"
        );
    }

    eprintln!("with a rebinding name: {} connections", decoy.n_came());
    assert_eq!(decoy.n_came(), 0);
}
