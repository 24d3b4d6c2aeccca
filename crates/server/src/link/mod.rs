//! How sessions reach the server.
