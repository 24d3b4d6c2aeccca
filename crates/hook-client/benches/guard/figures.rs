//! Times of calls, and figures of processes.

use std::time::Instant;

use crate::Result;

/// The times of all calls of a contender, sorted, in microseconds.
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    pub(crate) fn p50(&self) -> f64 {
        self.percentile(0.5)
    }

    pub(crate) fn p99(&self) -> f64 {
        self.percentile(0.99)
    }

    fn percentile(&self, share: f64) -> f64 {
        let at = (self.0.len() as f64 * share) as usize;
        self.0.get(at.min(self.0.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    }
}

/// A contender: makes the call with this number.
type Contender<'a> = &'a mut dyn FnMut(usize) -> Result<()>;

/// Measures contenders in turns, so that noise hits all alike. The first calls do not count.
pub(crate) fn contest<const N: usize>(calls: usize, mut contenders: [Contender<'_>; N]) -> Result<[Spread; N]> {
    const WARM_UP: usize = 3;
    let mut times = [const { Vec::new() }; N];
    for number in 0..calls + WARM_UP {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            contender(number)?;
            let microseconds = begun.elapsed().as_secs_f64() * 1e6;
            if number >= WARM_UP {
                times.push(microseconds);
            }
        }
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        Spread(times)
    }))
}

/// The resident memory of a process, in bytes.
pub(crate) fn resident(process: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("the process has no memory")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024.0)
}

/// The processor time of a process, in seconds.
pub(crate) fn processor_time(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program may contain spaces.
    let (_, fields) = stat.rsplit_once(") ").ok_or("unknown form of `/proc`")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks: f64 = [11, 12].into_iter().filter_map(|at| fields.get(at)?.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}
