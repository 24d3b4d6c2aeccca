//! What the server offers over HTTP.
