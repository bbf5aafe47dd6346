//! Injects faults into the Redis between the nodes: it is killed, frozen or disconnected from one
//! node, and messages are lost, repeated, swapped or corrupted.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use tokio::time::{Instant, sleep};

use crate::fault_injectors::FaultLog;
use crate::record::{Fault, now};
use crate::support::redis::RedisServer;
use crate::support::redis_proxy::{ProxyFault, RedisProxy};

/// A Redis, and a proxy to it for each node.
pub struct Redis {
    server: RedisServer,
    pub lines: Vec<RedisProxy>,
}

impl Redis {
    /// Starts Redis and its proxies.
    pub async fn start(n_nodes: usize) -> Redis {
        let server = RedisServer::start().await;
        let mut lines = Vec::new();
        for _ in 0..n_nodes {
            lines.push(RedisProxy::to(server.port()).await);
        }
        Redis { server, lines }
    }

    /// Injects faults until the end; returns it without a fault.
    pub async fn inject_faults(
        mut self,
        mut rng: ChaCha8Rng,
        end: Instant,
        done: FaultLog,
    ) -> Redis {
        loop {
            sleep(Duration::from_millis(rng.random_range(800..4_000))).await;
            if Instant::now() >= end {
                return self;
            }
            let at = now();
            let kind = self.inject_fault(&mut rng).await;
            let healed = self.server.ask(&["PING"]).await.is_ok();
            done.lock().push(Fault {
                kind,
                node: None,
                worker: String::new(),
                at,
                until: now(),
                healed,
            });
        }
    }

    /// Applies one fault and reverts it.
    async fn inject_fault(&mut self, rng: &mut ChaCha8Rng) -> String {
        let lasts = Duration::from_millis(rng.random_range(200..3_000));
        let one = rng.random_range(0..self.lines.len());
        match rng.random_range(0..10) {
            0..3 => {
                self.lines[one].cut();
                sleep(lasts).await;
                self.lines[one].reconnect();
                "Redis cut off from a node".to_owned()
            }
            3 => {
                self.server.kill();
                sleep(lasts).await;
                self.server.start_again().await;
                "Redis killed".to_owned()
            }
            4 => {
                self.server.freeze();
                sleep(lasts).await;
                self.server.thaw();
                "Redis frozen".to_owned()
            }
            5 => {
                self.server.publish_raw(b"\x00{\"never\": \xff said").await;
                "nonsense on every channel of Redis".to_owned()
            }
            _ => {
                let harms = [
                    ProxyFault::LoseAll,
                    ProxyFault::LoseHalf,
                    ProxyFault::Repeat,
                    ProxyFault::Swap,
                    ProxyFault::Garble,
                ];
                let harm = harms[rng.random_range(0..harms.len())];
                self.lines.iter().for_each(|it| it.inject_fault(harm));
                sleep(lasts).await;
                self.lines
                    .iter()
                    .for_each(|it| it.inject_fault(ProxyFault::None));
                format!("messages over Redis: {harm:?}")
            }
        }
    }
}
