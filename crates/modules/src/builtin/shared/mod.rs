//! Parts that several built-in modules share.

pub(super) mod background;
pub(super) mod per_session;
pub(super) mod session_tree;
pub(super) mod settings;
pub(super) mod text;
pub(super) mod todo_list;
