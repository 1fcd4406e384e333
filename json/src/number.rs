//! JSON numbers as they are written, compared without rounding.
//!
//! Floating-point numbers would treat `9007199254740993` and `9007199254740992` as equal.

use std::cmp::Ordering;

/// Largest exponent that is kept. Larger exponents are treated as infinite.
const EXPONENT_MAX: i64 = 1 << 40;

/// Number in decimal digits: `0.DIGITS` times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug)]
pub struct Number<'a> {
    negative: bool,
    /// Digits of the number, which may include a decimal point, without leading and trailing zeros.
    /// Empty for zero.
    digits: &'a str,
    exponent: i64,
}

impl<'a> Number<'a> {
    /// Reads the text of a JSON number. Returns `None` for any other text.
    #[must_use]
    pub fn read(text: &'a str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (digits, exponent) = match rest.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, read_exponent(exponent)?),
            None => (rest, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let zeros = |text: &str| text.bytes().take_while(|byte| *byte == b'0').count() as i64;
        let point = match zeros(whole) {
            all if all == whole.len() as i64 => zeros(fraction).saturating_neg(),
            leading => (whole.len() as i64).saturating_sub(leading),
        };
        let mut significant = digits.trim_start_matches(['0', '.']);
        if digits.contains('.') {
            significant = significant.trim_end_matches('0').trim_end_matches('.');
        }
        let significant = significant.trim_end_matches('0');
        let exponent = point.saturating_add(exponent).clamp(-EXPONENT_MAX, EXPONENT_MAX);
        let is_zero = significant.is_empty();
        Some(Self {
            negative: negative && !is_zero,
            digits: significant,
            exponent: if is_zero { i64::MIN } else { exponent },
        })
    }

    /// Returns true if the value is an integer: `1.0` and `1e2` count as integers too.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.digits().count() as i64 <= self.exponent.max(0)
    }

    /// Returns the number without its fraction, at most `u64::MAX`. Returns `None` for a negative
    /// number.
    #[must_use]
    pub fn whole_part(&self) -> Option<u64> {
        if self.negative {
            return None;
        }
        let mut digits = self.digits();
        let mut number = 0u64;
        for _ in 0..self.exponent.clamp(0, 21) {
            let digit = u64::from(digits.next().unwrap_or(b'0').wrapping_sub(b'0'));
            number = number.saturating_mul(10).saturating_add(digit);
        }
        Some(number)
    }

    fn digits(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.digits.bytes().filter(|byte| *byte != b'.')
    }
}

fn read_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // An exponent that does not fit into `i64` is beyond `EXPONENT_MAX`, and counts as infinite.
    let exponent = digits.parse().unwrap_or(i64::MAX);
    Some(if negative { exponent.saturating_neg() } else { exponent })
}

impl Ord for Number<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let size =
            || self.exponent.cmp(&other.exponent).then_with(|| self.digits().cmp(other.digits()));
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => size(),
            (true, true) => size().reverse(),
        }
    }
}

impl PartialOrd for Number<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number<'_> {}

#[cfg(test)]
mod tests;
