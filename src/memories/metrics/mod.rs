//! Metrics of the memory: recalls, embedding requests, circuit breakers, and the background work.

pub mod embedding_metrics;
pub mod memory_load;
pub mod memory_metrics;
