//! Identities of machines, consoles, collectors, services and administrators.

mod certificates;
mod error;
mod jwt;
mod member;
mod organisation;
mod permissions;
mod role;
mod server_config;
mod token;

pub use error::EnrolError;
pub use member::{MEMBER, Member, MemberReaders};
pub use organisation::{Identity, NewOrganisation, Organisation};
pub use permissions::Permissions;
pub use role::FleetRole;
pub use token::JoinToken;
