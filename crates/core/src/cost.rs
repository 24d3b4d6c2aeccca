//! The cost of a model call, as a hook reports it.

use std::fmt;
use std::str::FromStr;

const PREFIX: &str = "cost: ";
/// Digits after the point.
const DIGITS: usize = 6;
const MILLION: u64 = 1_000_000;
const MAX_CURRENCY: usize = 8;

/// The cost of a model call. A hook that knows the price gives it as its reason at `provider:response`, and the record keeps it.
///
/// ```
/// use amplifier_core::CallCost;
///
/// let cost = CallCost::new(0.0123, "USD").unwrap();
/// assert_eq!(cost.to_string(), "cost: 0.012300 USD");
/// assert_eq!("cost: 0.012300 USD".parse(), Ok(cost));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallCost {
    /// Millionths of the currency.
    pub millionths: u64,
    /// The currency, such as `USD`.
    pub currency: String,
}

/// A text that is not the cost of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid cost; expected the form `cost: 0.012300 USD`")]
pub struct InvalidCallCost;

impl CallCost {
    /// Creates a cost, rounded to millionths; `None` for an invalid amount or currency.
    pub fn new(amount: f64, currency: &str) -> Option<Self> {
        let is_valid = amount.is_finite() && (0.0..=1e12).contains(&amount) && is_currency(currency);
        let millionths = (amount * MILLION as f64).round() as u64;
        is_valid.then(|| Self { millionths, currency: currency.to_owned() })
    }
}

fn is_currency(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_CURRENCY && text.chars().all(char::is_alphanumeric)
}

impl fmt::Display for CallCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.millionths / MILLION, self.millionths % MILLION);
        write!(f, "{PREFIX}{whole}.{part:0DIGITS$} {}", self.currency)
    }
}

impl FromStr for CallCost {
    type Err = InvalidCallCost;

    fn from_str(text: &str) -> Result<Self, InvalidCallCost> {
        let (amount, currency) =
            text.strip_prefix(PREFIX).and_then(|text| text.split_once(' ')).ok_or(InvalidCallCost)?;
        let (whole, part) = amount.split_once('.').ok_or(InvalidCallCost)?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if part.len() != DIGITS || !is_number(whole) || !is_number(part) || !is_currency(currency) {
            return Err(InvalidCallCost);
        }
        let number = |text: &str| text.parse::<u64>().ok();
        let millionths = number(whole).and_then(|whole| whole.checked_mul(MILLION)?.checked_add(number(part)?));
        Ok(Self { millionths: millionths.ok_or(InvalidCallCost)?, currency: currency.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_form_is_a_cost() {
        for amount in [0.0, 0.000_001, 1.5, 123_456.789] {
            let cost = CallCost::new(amount, "EUR").unwrap();
            assert_eq!(cost.to_string().parse(), Ok(cost));
        }
        for text in [
            "",
            "cost: ",
            "cost: 1 USD",
            "cost: 1.5 USD",
            "cost: -1.000000 USD",
            "cost: 1.000000 U D",
            "1.000000 USD",
            "cost: .000000 USD",
            "cost: 99999999999999999999.000000 USD",
        ] {
            assert_eq!(text.parse::<CallCost>(), Err(InvalidCallCost), "{text}");
        }
        for (amount, currency) in [(-1.0, "USD"), (f64::NAN, "USD"), (1e13, "USD"), (1.0, ""), (1.0, "US D")] {
            assert_eq!(CallCost::new(amount, currency), None);
        }
    }
}
