//! Whose events are those that hooks emit on the registry itself.

/// The sessions that use a registry. While there is one alone, the registry's own events belong to it; of several, nobody can tell which,
/// so that they belong to the one that they name.
#[derive(Debug, Default)]
pub struct RegistrySessions {
    /// Their ids, where they have one.
    used_by: Vec<Option<String>>,
}

impl RegistrySessions {
    /// Adds a session.
    pub fn begin(&mut self, id: Option<&str>) {
        self.used_by.push(id.map(str::to_owned));
    }

    /// Takes a session away.
    pub fn end(&mut self, id: Option<&str>) {
        if let Some(index) = self.used_by.iter().position(|known| known.as_deref() == id) {
            self.used_by.swap_remove(index);
        }
    }

    /// The id of the one session that uses the registry, if it is one and has an id.
    pub fn sole(&self) -> Option<&str> {
        let (first, rest) = self.used_by.split_first()?;
        first.as_deref().filter(|_| rest.iter().all(|other| other == first))
    }
}
