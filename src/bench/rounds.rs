//! What may be timed, and timing in turn.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::decimal::{Decimal, per_second, quotient};
use super::{BenchError, same};

/// Work that may be timed: its result has the oracle's bits.
///
/// The only other way in is [`Checked::yardstick`], for arithmetic that is not
/// ours and whose results are thrown away.
pub struct Checked<'a> {
    work: Box<dyn FnMut() + 'a>,
}

impl<'a> Checked<'a> {
    /// Runs `work` once on `out` and compares the result with the oracle's:
    /// places in `out` and what they hold.
    ///
    /// # Errors
    /// [`BenchError::Differs`], with the first difference.
    pub fn new<T: PartialEq + Debug + 'a>(
        what: &str,
        oracle: &'static str,
        expected: impl IntoIterator<Item = (usize, T)>,
        mut out: Vec<T>,
        mut work: impl FnMut(&mut [T]) + 'a,
    ) -> Result<Self, BenchError> {
        work(&mut out);
        same(what, oracle, expected, &out)?;
        Ok(Self { work: Box::new(move || work(&mut out)) })
    }

    /// Work that was checked elsewhere in one piece with its results, or that is a
    /// yardstick and computes nothing of ours. It runs once, as checked work has.
    pub fn yardstick(mut work: impl FnMut() + 'a) -> Self {
        work();
        Self { work: Box::new(work) }
    }
}

/// How long to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Rounds that are made in any case (count, at least 1).
    pub rounds: usize,
    /// Rounds are added until this much time has passed.
    pub time: Duration,
}

/// Durations of one piece of work, one a round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Times {
    nanos: Vec<u64>,
}

impl Times {
    /// The shortest, in nanoseconds: what the machine can do undisturbed.
    pub fn best(&self) -> u64 {
        self.nanos.iter().copied().min().unwrap_or(0)
    }

    /// The median, in nanoseconds: what one may count on.
    pub fn median(&self) -> u64 {
        median(self.nanos.clone())
    }

    /// How many rounds were made.
    pub fn rounds(&self) -> usize {
        self.nanos.len()
    }

    /// The rate of `amount` a round, in 10^9 a second.
    pub fn rate(&self, amount: u64) -> Figures {
        Figures { best: per_second(amount, self.best()), median: per_second(amount, self.median()) }
    }

    /// Nanoseconds for each of `count`: the shorter the better.
    pub fn nanos_each(&self, count: usize) -> Figures {
        let each = |nanos| quotient(nanos, count as u64);
        Figures { best: each(self.best()), median: each(self.median()) }
    }

    /// Seconds a round.
    pub fn seconds(&self) -> Figures {
        self.nanos_each(1_000_000_000)
    }

    /// How many times as fast as `other` this is, for equal amounts: the ratio of
    /// the best rounds, and the median of the ratios of each round.
    pub fn speed_ratio(&self, other: &Self) -> Figures {
        let each = self.nanos.iter().zip(&other.nanos);
        let each = each.map(|(&own, &other)| quotient(other, own)).collect();
        Figures { best: quotient(other.best(), self.best()), median: median(each) }
    }
}

/// A figure from the best round, and the median over the rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Figures {
    /// From the best round.
    pub best: Decimal,
    /// The median over all rounds.
    pub median: Decimal,
}

/// Times the works in turn, A B C A B C and so on; returns their times in order.
pub fn alternate(works: &mut [Checked<'_>], budget: Budget) -> Vec<Times> {
    let mut times = vec![Times { nanos: Vec::new() }; works.len()];
    let start = Instant::now();
    let mut round = 0;
    while round < budget.rounds.max(1) || start.elapsed() < budget.time {
        for (Checked { work }, times) in works.iter_mut().zip(&mut times) {
            let start = Instant::now();
            work();
            // 2^64 nanoseconds are 584 years.
            times.nanos.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        round += 1;
    }
    times
}

/// The lower of the two middle values of an even number.
fn median<T: Ord + Copy + Default>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::F32;

    #[test]
    fn a_result_with_one_wrong_bit_cannot_be_timed() {
        let expected = || [(0, F32::ONE), (2, F32::ZERO)];
        let right = |out: &mut [F32]| out.copy_from_slice(&[F32::ONE, F32::NAN, F32::ZERO]);
        let wrong = |out: &mut [F32]| out.copy_from_slice(&[F32::ONE, F32::NAN, F32(1)]);
        let out = || vec![F32::ZERO; 3];
        assert!(Checked::new("right", "oracle", expected(), out(), right).is_ok());
        let error = Checked::new("lanes", "scalar text", expected(), out(), wrong).err().unwrap();
        assert_eq!(
            error.to_string(),
            "lanes: output 2 is 00000001 where the scalar text has 00000000; no rate is reported"
        );
        let beyond = [(3, F32::ONE)];
        let error = Checked::new("lanes", "oracle", beyond, out(), right).err().unwrap();
        assert!(error.to_string().contains("output 3 is missing"), "{error}");
    }

    #[test]
    fn works_take_turns() {
        let order = std::cell::RefCell::new(String::new());
        let budget = Budget { rounds: 3, time: Duration::ZERO };
        let mut works =
            ["a", "b"].map(|name| Checked::yardstick(|| order.borrow_mut().push_str(name)));
        let times = alternate(&mut works, budget);
        drop(works);
        assert_eq!(order.into_inner(), "abababab", "once each before, then three rounds");
        assert_eq!(times.iter().map(Times::rounds).collect::<Vec<_>>(), [3, 3]);
    }

    #[test]
    fn figures_are_the_best_and_the_median() {
        let own = Times { nanos: vec![100, 400, 200] };
        let other = Times { nanos: vec![50, 100, 150] };
        let rate = own.rate(1000);
        assert_eq!((rate.best, rate.median), (quotient(10, 1), quotient(5, 1)));
        let ratio = own.speed_ratio(&other);
        // Best 50/100; each round 0.5, 0.25, 0.75.
        assert_eq!((ratio.best, ratio.median), (quotient(1, 2), quotient(1, 2)));
    }
}
