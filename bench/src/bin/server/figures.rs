//! How figures are put.

use std::fmt;
use std::time::Duration;

/// One line of the table.
pub(crate) fn row(name: &str, columns: [String; 2]) {
    let [server, floor] = columns;
    println!("{name:>40} {server:>28} {floor:>28}");
}

/// Times, sorted.
#[derive(Debug, Default)]
pub(crate) struct Spread(Vec<Duration>);

impl Spread {
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn most(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }

    fn at(&self, percent: usize) -> Duration {
        let place = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0.get(place).copied().unwrap_or_default()
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [middle, high, most] = [self.at(50), self.at(99), self.most()].map(|time| time.as_secs_f64() * 1e3);
        write!(f, "{middle:.1} {high:.1} {most:.1} ms")
    }
}
