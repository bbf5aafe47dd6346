//! Responses: what programs ask for under `/v1`, answered by the same models as rooms.
//!
//! ```text
//!   create ─► queued ──claim──► in_progress ──finish──► completed, incomplete, failed, cancelled
//!                │  ◄─hand_back──┘     ▲ │
//!                └─ cancelled, expired │ └─ swept: instance_lost
//!   create (foreground) ───────────────┘
//! ```
//!
//! Read `desk` and `shelf` (the verbs), `turn` (one turn, from the first event to the last), `fold`
//! (what happens becomes the response and its stream), `recorder` (what is written, and when; a
//! response that is not stored has none), `queue` (the only statements that move a response). Characters
//! and spaces answer as models, too: `voice` (which ones), `cast` (who speaks, one after the other).

pub mod approvals;
pub mod bill;
pub mod call_groups;
pub mod cast;
pub mod compaction;
pub mod conversation;
pub mod conversation_item;
pub mod desk;
pub mod document;
pub mod ending;
pub mod event;
pub mod fold;
pub mod fold_calls;
pub mod fold_text;
pub mod fold_voice;
pub mod happening;
pub mod history;
pub mod inbox;
pub mod item;
pub mod models;
pub mod mouth;
pub mod names;
pub mod open_calls;
pub mod parts;
pub mod pipe;
pub mod places;
pub mod preparation;
pub mod prompt;
pub mod purge;
pub mod queue;
pub mod recall;
pub mod recorder;
pub mod refusal;
pub mod remembered;
pub mod remote;
pub mod remote_turn;
pub mod response;
pub mod rounds;
pub mod shelf;
pub mod sorting;
pub mod speakers_of;
pub mod spec;
pub mod speech;
pub mod step;
pub mod stop;
pub mod sweep;
pub mod toolbox;
pub mod turn;
pub mod voice;
pub mod voice_prompt;
pub mod worker;
