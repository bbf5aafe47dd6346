//! One message on the wire: who sent it, its number, and an envelope or a signal, sealed.
//!
//! **Invariant:** what does not open is not ours. The key comes from the secret that all nodes of
//! a house share, so neither garbage nor another house on the same Redis gets any further.
//!
//! The bytes: 16 of the node, 8 of the number, which together are the nonce, and the sealed rest:
//! a line of JSON that says what it is, and the frame as clients get it.

use crate::ids::ConversationId;
use crate::key_derivation;
use crate::realtime::bus::signal::Signal;
use crate::realtime::event::Cargo;
use crate::realtime::event::Delta;
use crate::realtime::event::Envelope;
use crate::realtime::event::Mark;
use crate::realtime::event::Order;
use crate::realtime::topic::Topic;
use bytestring::ByteString;
use chacha20poly1305::Key;
use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::XNonce;
use chacha20poly1305::aead::Aead;
use chacha20poly1305::aead::KeyInit;
use serde::Deserialize;
use serde::Serialize;
use uuid::Uuid;

/// The secret serves this purpose through this label, and no other purpose through it.
const PURPOSE: &[u8] = b"troupe: words between nodes";

const NODE_BYTES: usize = 16;
const NONCE_BYTES: usize = 24;

/// What travels.
#[derive(Clone, Debug)]
pub enum Parcel {
    Envelope(Envelope),
    Signal(Signal),
}

impl Parcel {
    /// Whether other nodes are to hear it. Each tells its own listeners who types.
    pub fn travels(&self) -> bool {
        !matches!(self, Self::Envelope(it) if matches!(it.cargo, Cargo::Aside { .. }))
    }
}

/// What arrived.
#[derive(Debug)]
pub struct Packet {
    /// The process that sent it.
    pub from: Uuid,
    /// Grows by exactly 1 from one packet of a process to the next.
    pub n: u64,
    pub parcel: Parcel,
}

/// The line that says what follows it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Head {
    Frame {
        topic: Topic,
        rev: Option<i64>,
    },
    Stream {
        topic: Topic,
        run: Uuid,
        lease: i64,
        mark: Mark,
    },
    /// The text of the piece follows, not its frame: it takes both to make one.
    Delta {
        conversation: ConversationId,
        run: Uuid,
        lease: i64,
        offset: usize,
    },
    Order {
        topic: Topic,
        order: Order,
    },
    Signal(Signal),
}

/// Seals and opens packets.
pub struct Seal {
    cipher: XChaCha20Poly1305,
}

impl Seal {
    /// With the secret of the house.
    pub fn new(secret: &str) -> Self {
        let key = key_derivation::derive_key(secret, PURPOSE);
        Self {
            cipher: XChaCha20Poly1305::new(&Key::from(key)),
        }
    }

    /// The bytes of a packet; `None`: this stays on its own node.
    pub fn close(&self, from: Uuid, n: u64, parcel: &Parcel) -> Option<Vec<u8>> {
        let (head, rest) = parts(parcel)?;
        let mut plain = serde_json::to_vec(&head).ok()?;
        plain.push(b'\n');
        plain.extend_from_slice(rest.as_bytes());
        let nonce = nonce(from, n);
        let sealed = self
            .cipher
            .encrypt(&XNonce::from(nonce), plain.as_slice())
            .ok()?;
        Some([nonce.as_slice(), &sealed].concat())
    }

    /// What is in these bytes; `None`: no node of this house sent them.
    pub fn open(&self, bytes: &[u8]) -> Option<Packet> {
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let plain = self.cipher.decrypt(&XNonce::from(*nonce), sealed).ok()?;
        let line = plain.iter().position(|it| *it == b'\n')?;
        let head = serde_json::from_slice(&plain[..line]).ok()?;
        let rest = String::from_utf8(plain[line + 1..].to_vec()).ok()?;
        let (from, n) = nonce.split_first_chunk::<NODE_BYTES>()?;
        Some(Packet {
            from: Uuid::from_bytes(*from),
            n: u64::from_be_bytes(n.try_into().ok()?),
            parcel: whole(head, rest.into()),
        })
    }
}

fn nonce(from: Uuid, n: u64) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    nonce[..NODE_BYTES].copy_from_slice(from.as_bytes());
    nonce[NODE_BYTES..].copy_from_slice(&n.to_be_bytes());
    nonce
}

fn parts(parcel: &Parcel) -> Option<(Head, ByteString)> {
    let Envelope { topic, cargo } = match parcel {
        Parcel::Signal(signal) => return Some((Head::Signal(signal.clone()), ByteString::new())),
        Parcel::Envelope(envelope) => envelope,
    };
    let topic = *topic;
    Some(match cargo {
        Cargo::Frame { json, rev } => (Head::Frame { topic, rev: *rev }, json.clone()),
        Cargo::Stream {
            json,
            run,
            lease,
            mark,
        } => {
            let (run, lease, mark) = (*run, *lease, *mark);
            let head = Head::Stream {
                topic,
                run,
                lease,
                mark,
            };
            (head, json.clone())
        }
        Cargo::Delta(delta) => {
            let head = Head::Delta {
                conversation: ConversationId(delta.conversation),
                run: delta.run,
                lease: delta.lease,
                offset: delta.offset,
            };
            (head, delta.text.clone())
        }
        Cargo::Order(order) => {
            let order = *order;
            (Head::Order { topic, order }, ByteString::new())
        }
        Cargo::Aside { .. } => return None,
    })
}

fn whole(head: Head, rest: ByteString) -> Parcel {
    let (topic, cargo) = match head {
        Head::Signal(signal) => return Parcel::Signal(signal),
        Head::Frame { topic, rev } => (topic, Cargo::Frame { json: rest, rev }),
        Head::Stream {
            topic,
            run,
            lease,
            mark,
        } => {
            let json = rest;
            let cargo = Cargo::Stream {
                json,
                run,
                lease,
                mark,
            };
            (topic, cargo)
        }
        Head::Delta {
            conversation,
            run,
            lease,
            offset,
        } => {
            let delta = Delta::new(conversation, run, offset, rest).under(lease);
            return Parcel::Envelope(Envelope::delta(delta));
        }
        Head::Order { topic, order } => (topic, Cargo::Order(order)),
    };
    Parcel::Envelope(Envelope { topic, cargo })
}

#[cfg(test)]
mod tests {
    use super::Parcel;
    use super::Seal;
    use crate::ids::ConversationId;
    use crate::ids::SpaceId;
    use crate::ids::UserId;
    use crate::realtime::bus::signal::Signal;
    use crate::realtime::event::Cargo;
    use crate::realtime::event::Delta;
    use crate::realtime::event::Envelope;
    use crate::realtime::event::Mark;
    use crate::realtime::event::Order;
    use crate::realtime::topic::Topic;
    use proptest::prelude::*;
    use uuid::Uuid;

    const HERE: Topic = Topic::Conversation(ConversationId(7));

    fn all() -> Vec<Parcel> {
        let run = Uuid::now_v7();
        let json = || "{\"type\":\"é\\n\"}".into();
        let cargo = [
            Cargo::Frame {
                json: json(),
                rev: Some(3),
            },
            Cargo::Stream {
                json: json(),
                run,
                lease: 2,
                mark: Mark::Reset,
            },
            Cargo::Delta(Delta::new(ConversationId(7), run, 4, "a\n\u{1f600}").under(2)),
        ];
        let envelopes = cargo.map(|cargo| Envelope { topic: HERE, cargo });
        let order = Envelope::order(UserId(1), Order::RightsChanged(SpaceId(2)));
        let mut all: Vec<Parcel> = envelopes.into_iter().map(Parcel::Envelope).collect();
        all.push(Parcel::Envelope(order));
        all.push(Parcel::Signal(Signal::Bell));
        all
    }

    #[test]
    fn what_was_sent_is_what_arrives() {
        let (seal, node) = (Seal::new("a secret of tests"), Uuid::now_v7());
        for (n, sent) in (1..).zip(all()) {
            let bytes = seal.close(node, n, &sent).unwrap();

            let came = seal.open(&bytes).unwrap();

            assert_eq!((came.from, came.n), (node, n));
            assert_eq!(format!("{:?}", came.parcel), format!("{sent:?}"));
        }
    }

    #[test]
    fn another_house_on_the_same_redis_is_not_understood() {
        let bell = Parcel::Signal(Signal::Bell);
        let bytes = Seal::new("one secret").close(Uuid::now_v7(), 1, &bell);

        assert!(Seal::new("another").open(&bytes.unwrap()).is_none());
    }

    proptest! {
        #[test]
        fn a_changed_or_cut_packet_does_not_open(at in 0..60usize, cut in 0..60usize, bits in 1..=255u8) {
            let seal = Seal::new("a secret of tests");
            let bytes = seal.close(Uuid::now_v7(), 1, &Parcel::Signal(Signal::Bell)).unwrap();
            let at = at % bytes.len();
            let mut changed = bytes.clone();
            changed[at] ^= bits;
            prop_assert!(seal.open(&changed).is_none());
            prop_assert!(seal.open(&bytes[..cut % bytes.len()]).is_none());
        }

        #[test]
        fn garbage_does_not_open(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Seal::new("a secret of tests").open(&bytes).is_none());
        }
    }
}
