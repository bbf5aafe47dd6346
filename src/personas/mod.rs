//! Personas: the roles that users play, each with a name, a description and a picture. A message keeps
//! the name and the picture that its persona had when it was posted.

pub mod message_persona;
pub mod persona;
pub mod persona_choice;
pub mod persona_names;
pub mod persona_picture;
pub mod persona_store;
