use amplifier_core::words;

words! {
    /// The work of an identity, which decides its permissions.
    #[derive(PartialOrd, Ord)]
    pub enum FleetRole("role") {
        /// Sends its own records and approval requests, and follows the policy.
        Machine = "machine",
        /// Shows approval requests of all machines, and answers them.
        Console = "console",
        /// Receives the records of all machines, and sends receipts.
        Collector = "collector",
        /// Answers hooks.
        Service = "service",
        /// Creates streams, and publishes policies.
        Admin = "admin",
    }
}

impl FleetRole {
    /// Returns `true` if the identity signs messages with a key that machines know from the policy.
    pub const fn signs(self) -> bool {
        matches!(self, Self::Console | Self::Collector)
    }
}
