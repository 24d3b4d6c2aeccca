//! The sessions of a registry.

/// The sessions that use a registry. The registry's own events belong to the only session; with several sessions, to the one that the event
/// names.
#[derive(Debug, Default)]
pub struct RegistrySessions {
    used_by: Vec<Option<String>>,
}

impl RegistrySessions {
    /// Adds a session.
    pub fn begin(&mut self, id: Option<&str>) {
        self.used_by.push(id.map(str::to_owned));
    }

    /// Removes a session.
    pub fn end(&mut self, id: Option<&str>) {
        if let Some(index) = self.used_by.iter().position(|known| known.as_deref() == id) {
            self.used_by.swap_remove(index);
        }
    }

    /// Returns the id of the session that uses the registry, if it is the only one and has an id.
    pub fn sole(&self) -> Option<&str> {
        let (first, rest) = self.used_by.split_first()?;
        first.as_deref().filter(|_| rest.iter().all(|other| other == first))
    }
}
