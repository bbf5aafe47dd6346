//! Delivers events to the subscribers of a topic, on this node and on other nodes.
//!
#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! | --- | --- |
//! | [`envelope`] | the trait of events, and envelopes, which are encoded events |
//! | [`topic`] | what a socket can subscribe to |
//! | [`hub`], [`channel`] | the subscribers of all topics, and of one with its order of events |
//! | [`receivers`] | which subscribers of a topic receive an envelope |
//! | [`outbox`] | the bounded queue of one socket |
//! | [`presence`] | publishes who is connected, on all nodes |
//! | [`presence_table`], [`remote_presence`] | who is connected to this node, and to the others |
//! | [`typing`], [`typing_users`] | typing indicators, and the users who type now |
//! | [`cluster`] | messages, signals and counters between nodes, over Redis |
//! | [`socket_timeouts`] | timeouts of sockets |
//! | [`metrics`] | metrics of the hub |

pub mod channel;
pub mod cluster;
pub mod envelope;
pub mod hub;
pub mod metrics;
pub mod outbox;
pub mod presence;
pub mod presence_table;
pub mod receivers;
pub mod remote_presence;
pub mod socket_timeouts;
pub mod topic;
pub mod typing;
pub mod typing_users;
