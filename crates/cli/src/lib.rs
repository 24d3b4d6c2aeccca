//! The command line of Amplifier Hooks, as a library, so that its parts can be tested alone.

pub mod agent;
pub mod anchors;
pub mod bundles;
pub mod commands;
pub mod config;
pub mod confine;
pub mod definitions;
pub mod guards;
pub mod home;
pub mod hosting;
pub mod rules;
pub mod serving;
pub mod signals;
pub mod terminal;
pub mod trust;
pub mod words;
