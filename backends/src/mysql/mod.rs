//! What the two MySQL backends share.

pub(crate) mod connect;

mod url;

pub(crate) mod session;
mod statements;

mod failover;

pub(crate) mod error;

pub(crate) mod dialect;

pub(crate) mod inspect;

pub(crate) mod skip_locked;

pub(crate) mod doctor;
