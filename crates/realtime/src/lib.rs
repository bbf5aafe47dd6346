//! Delivers events to the subscribers of a topic, on this node and on other nodes.
//!
#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! | --- | --- |
//! | [`event`] | the trait of events, and envelopes, which are encoded events |
//! | [`topic`] | what a socket can subscribe to |
//! | [`hub`], [`channel`] | the subscribers of all topics, and of one topic with its order of events |
//! | [`outbox`] | the bounded queue of one socket |
//! | [`presence`], [`remote_presence`] | who is connected, on this node and on the others |
//! | [`typing`] | typing indicators |
//! | [`cluster`] | messages, signals and counters between nodes, over Redis |
//! | [`socket_timeouts`] | timeouts of sockets |
//! | [`metrics`] | metrics of the hub |

pub mod channel;
pub mod cluster;
pub mod event;
pub mod hub;
pub mod metrics;
pub mod outbox;
pub mod presence;
pub mod presence_table;
pub mod remote_presence;
pub mod socket_timeouts;
pub mod topic;
pub mod typing;
pub mod typing_users;
