//! Resolves names to the addresses that a test states, so that no test uses the network.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use outbound_http::client::Resolver;
use parking_lot::Mutex;

/// Resolves some names. A name with several entries resolves to each of them in turn.
#[derive(Default)]
pub struct TestResolver {
    known: HashMap<&'static str, Vec<&'static [&'static str]>>,
    asked: Mutex<Vec<String>>,
}

impl TestResolver {
    /// Creates a resolver of these names and their addresses.
    pub fn new(names: &[(&'static str, &'static [&'static str])]) -> Arc<TestResolver> {
        let mut known: HashMap<_, Vec<_>> = HashMap::new();
        for (name, addresses) in names {
            known.entry(*name).or_default().push(*addresses);
        }
        let asked = Mutex::default();
        Arc::new(TestResolver { known, asked })
    }

    /// Returns every name that was looked up, in order.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

#[async_trait]
impl Resolver for TestResolver {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut asked = self.asked.lock();
        let nth = asked.iter().filter(|it| *it == name).count();
        asked.push(name.to_owned());
        let Some(answers) = self.known.get(name) else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no such name"));
        };
        let addresses = answers[nth % answers.len()].iter();
        Ok(addresses
            .map(|it| it.parse().expect("an address"))
            .collect())
    }
}
