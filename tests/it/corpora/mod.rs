//! Corpora: everything that strangers are known to send, put wherever it can be put.
//!
//! Doors are taken from the list of the server, and what a door takes is found out by asking it.

mod aborts;
mod apart;
mod bodies;
mod crowd;
mod encodings;
mod fields;
mod frames;
mod headers;
mod hoarding;
mod house;
mod injection;
mod json;
mod line;
mod lossless;
mod manners;
mod peer;
mod queries;
mod sign_in;
mod sockets;
mod strings;
