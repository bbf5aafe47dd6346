//! Who may do what, as a grid: every door of the published document and every frame of the socket,
//! for everybody there is, with an id of their own, a foreign one, one that is not there and one of
//! another kind. A door without a row, or a row without a door, fails.

mod fixture;
mod frames;
mod grid;
mod ids;
mod roles;
mod table;
mod table_lore;
mod table_spaces;
